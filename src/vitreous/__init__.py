"""Vision Transformers that can be seen through.

Names are loaded when they are first used, so that importing this package is cheap and never loads
torch. This table is the one place where a name is resolved by string.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

HOMES = {
    "CheckpointError": "errors",
    "Classifier": "models.classifier",
    "ConfigError": "errors",
    "DataError": "errors",
    "Dataset": "data.dataset",
    "ImageError": "errors",
    "Material": "studies.material",
    "NumberReader": "reading.reader",
    "Plan": "cost.plan",
    "RandomScores": "studies.scores",
    "Reading": "reading.reading",
    "Recipe": "config",
    "Result": "training.folder",
    "RunError": "errors",
    "ShapeError": "errors",
    "Study": "studies.study",
    "ViTConfig": "config",
    "VitreousError": "errors",
    "build": "models.classifier",
    "count_parameters": "cost.parameters",
    "draw": "inspection.diagram",
    "faithfulness": "inspection.faithfulness",
    "export_onnx": "export.onnx",
    "fine_tune": "training.fine_tuning",
    "load": "checkpoints.store",
    "load_source": "data.sources",
    "load_weights": "interop.load",
    "patchify": "nn.patches",
    "plan": "cost.plan",
    "predict": "training.predict",
    "preset": "config",
    "probe": "training.probe",
    "read": "reading.reader",
    "recipe": "config",
    "record_attention": "inspection.record",
    "relevance": "inspection.relevance",
    "rollout": "inspection.rollout",
    "run_study": "studies.runner",
    "save": "checkpoints.store",
    "train": "training.run",
    "unpatchify": "nn.patches",
    "verify": "training.verify",
}

if TYPE_CHECKING:
    from vitreous.checkpoints.store import load as load
    from vitreous.checkpoints.store import save as save
    from vitreous.config import Recipe as Recipe
    from vitreous.config import ViTConfig as ViTConfig
    from vitreous.config import preset as preset
    from vitreous.config import recipe as recipe
    from vitreous.cost.parameters import count_parameters as count_parameters
    from vitreous.cost.plan import Plan as Plan
    from vitreous.cost.plan import plan as plan
    from vitreous.data.dataset import Dataset as Dataset
    from vitreous.data.sources import load_source as load_source
    from vitreous.errors import CheckpointError as CheckpointError
    from vitreous.errors import ConfigError as ConfigError
    from vitreous.errors import DataError as DataError
    from vitreous.errors import ImageError as ImageError
    from vitreous.errors import RunError as RunError
    from vitreous.errors import ShapeError as ShapeError
    from vitreous.errors import VitreousError as VitreousError
    from vitreous.export.onnx import export_onnx as export_onnx
    from vitreous.inspection.diagram import draw as draw
    from vitreous.inspection.faithfulness import faithfulness as faithfulness
    from vitreous.inspection.record import record_attention as record_attention
    from vitreous.inspection.relevance import relevance as relevance
    from vitreous.inspection.rollout import rollout as rollout
    from vitreous.interop.load import load_weights as load_weights
    from vitreous.models.classifier import Classifier as Classifier
    from vitreous.models.classifier import build as build
    from vitreous.nn.patches import patchify as patchify
    from vitreous.nn.patches import unpatchify as unpatchify
    from vitreous.reading.reader import NumberReader as NumberReader
    from vitreous.reading.reader import read as read
    from vitreous.reading.reading import Reading as Reading
    from vitreous.studies.material import Material as Material
    from vitreous.studies.runner import run_study as run_study
    from vitreous.studies.scores import RandomScores as RandomScores
    from vitreous.studies.study import Study as Study
    from vitreous.training.fine_tuning import fine_tune as fine_tune
    from vitreous.training.folder import Result as Result
    from vitreous.training.predict import predict as predict
    from vitreous.training.probe import probe as probe
    from vitreous.training.run import train as train
    from vitreous.training.verify import verify as verify

__all__ = sorted(HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'vitreous' has no attribute {name!r}")
    value = getattr(import_module(f"vitreous.{HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
