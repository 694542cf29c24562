"""What training makes small: functions of tensors."""
