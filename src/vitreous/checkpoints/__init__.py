"""Our own checkpoints: weights, config and provenance; nothing is ever unpickled."""
