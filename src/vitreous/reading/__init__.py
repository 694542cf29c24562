"""From an image file to a Reading: find lines, prepare, read, calibrate, reject. No web."""
