"""Everything this package raises on purpose.

VitreousError
├── ConfigError       a setting has a value that cannot work, or is not known
├── ShapeError        a tensor does not fit what it was given to
├── ImageError        a file or bytes that cannot become an image
├── DataError         a data source that is missing, damaged or not usable as it is
├── CheckpointError   a file that does not describe the model it claims to
└── RunError          a run that cannot start, go on, or be verified
"""

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "ImageError",
    "RunError",
    "ShapeError",
    "VitreousError",
]


class VitreousError(Exception):
    """Base of every error raised on purpose; catch this one at a boundary."""


class ConfigError(VitreousError, ValueError):
    """A setting has a value that cannot work, or is not known."""


class ShapeError(VitreousError, ValueError):
    """A tensor does not fit what it was given to."""


class ImageError(VitreousError, ValueError):
    """A file or bytes that cannot become an image."""


class DataError(VitreousError, ValueError):
    """A data source that is missing, damaged or not usable as it is."""


class CheckpointError(VitreousError, RuntimeError):
    """A file that does not describe the model it claims to."""


class RunError(VitreousError, RuntimeError):
    """A run that cannot start, go on, or be verified."""
