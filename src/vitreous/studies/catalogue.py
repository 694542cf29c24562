"""Studies in files: a folder of Python files, each with a docstring and one `STUDY`."""

import importlib.util
from pathlib import Path

from vitreous import settings
from vitreous.errors import ConfigError
from vitreous.studies.study import Study

__all__ = ["FOLDER", "find_study", "results_of", "study_files"]

FOLDER = Path("studies")


def study_files(folder: Path = FOLDER) -> dict[str, Path]:
    """The studies of a folder, by name; raises ConfigError where there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(
            f"there is no folder {folder}: go to where the project's studies are, or name a file"
        )
    return {path.stem: path for path in sorted(folder.glob("*.py"))}


def find_study(name: str, folder: Path = FOLDER) -> tuple[Study, Path]:
    """The study of a name or file, and its file; raises ConfigError with the nearest name."""
    path = Path(name)
    if path.suffix != ".py":
        path = settings.named("study", name, study_files(folder))
    return read_study(path), path


def read_study(path: Path) -> Study:
    """Run a file and take its `STUDY`."""
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"study_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{path}: {type(error).__name__}: {error}") from error
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise ConfigError(f"{path}: it has no STUDY = vitreous.Study(...)")
    return study


def results_of(path: Path) -> Path:
    """Where the results of a study's file are kept: beside it."""
    return path.parent / "results" / path.stem
