"""Search a recipe's settings for validation accuracy; the test set is never seen.

Optuna chooses; it is an optional extra. Each trial is in the storage when it ends, and the next
search with the same storage goes on.
"""

import contextlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, get_args

from vitreous import settings
from vitreous.checkpoints.files import require_room
from vitreous.config import Recipe
from vitreous.errors import ConfigError, RunError, VitreousError
from vitreous.training.interrupt import interrupts_held
from vitreous.training.job import Job
from vitreous.training.run import rehearse
from vitreous.training.state import Epoch

if TYPE_CHECKING:
    import optuna

__all__ = ["SPACE", "STORAGE", "Range", "Trial", "best_of", "read_space", "tune"]

STORAGE = "trials.db"
ROOM = 50_000_000


@dataclass(frozen=True)
class Range:
    """Values of one setting to choose from: between two numbers, or one of a list."""

    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()
    whole: bool = False
    """Whether only whole numbers are meant."""

    def suggest(self, trial: "optuna.trial.Trial", name: str) -> Any:
        """The trial's value. Where the ends are ten times apart factors count, and not steps."""
        if self.choices:
            return trial.suggest_categorical(name, self.choices)
        log = 0 < 10 * self.low <= self.high
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=log)
        return trial.suggest_float(name, self.low, self.high, log=log)


SPACE: Mapping[str, Range] = {
    "learning_rate": Range(1e-4, 1e-2),
    "matrix_rate": Range(3e-3, 1e-1),
    "weight_decay": Range(1e-4, 1e-1),
    "warmup": Range(0.0, 0.3),
}
"""What is searched where nothing is named."""


@dataclass(frozen=True)
class Trial:
    """One tried recipe, and what it came to."""

    number: int
    changes: Mapping[str, Any]
    """The settings that were chosen."""
    validation_accuracy: float | None
    """After its last epoch; None for one that failed."""
    state: str
    """"finished"; "given up" where it did worse than half of those before it by then; "failed"."""


def read_space(words: Mapping[str, str]) -> dict[str, Range]:
    """Ranges as they are typed: `1e-4..1e-2`, or `64,128,256`. Raises ConfigError."""
    known = settings.setting_types(Recipe)
    return {
        name: read_range(name, text, settings.named("setting", name, known))
        for name, text in words.items()
    }


def read_range(name: str, text: str, wanted: Any) -> Range:
    """One setting's range."""
    low, dots, high = text.partition("..")
    if not dots:
        return Range(choices=tuple(settings.parse(part, wanted, name) for part in text.split(",")))
    ends = [settings.parse(end, wanted, name) for end in (low, high)]
    if not all(type(end) in (int, float) for end in ends) or not ends[0] < ends[1]:
        raise ConfigError(f"{name}={text}: write a range of numbers as LOW..HIGH, the lower first")
    return Range(float(ends[0]), float(ends[1]), whole=float not in (wanted, *get_args(wanted)))


def tune(
    job: Job, folder: Path, space: Mapping[str, Range], *, trials: int
) -> Generator[Trial, None, None]:
    """Try recipes until the storage in `folder` holds so many; gives each trial as it ends.

    A trial is the job with some settings of its recipe changed; its score is the accuracy on the
    validation images after the last epoch. Raises RunError where Optuna is not installed, or where
    the storage is that of another model, data or space; KeyboardInterrupt after Ctrl-C, which costs
    the trial that runs.
    """
    require_room(folder, ROOM)
    study = open_search(job, folder, space)
    while len(study.get_trials(states=ended_states())) < trials:
        asked = study.ask()
        changes = {name: choice.suggest(asked, name) for name, choice in space.items()}
        yield attempt(job, study, asked, changes)


def open_search(job: Job, folder: Path, space: Mapping[str, Range]) -> "optuna.Study":
    """The storage's search, begun or gone on with."""
    try:
        import optuna
    except ImportError as error:
        raise RunError("a search needs Optuna: pip install 'vitreous[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        storage=f"sqlite:///{(folder / STORAGE).resolve()}",
        study_name="recipe",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=job.seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
        load_if_exists=True,
    )
    described = identity(job, space)
    before = study.user_attrs.get("search")
    if before not in (None, described):
        raise RunError(
            f"{folder / STORAGE}: a search of another model, recipe, data, seed or space is there; "
            "nothing was changed: choose another folder"
        )
    study.set_user_attr("search", described)
    return study


def identity(job: Job, space: Mapping[str, Range]) -> str:
    """What makes one search another one."""
    known = ("seed", "config", "recipe", "data_sha256")
    whole = {name: value for name, value in job.describe().items() if name in known}
    return json.dumps([whole, {name: repr(one) for name, one in space.items()}], sort_keys=True)


def ended_states() -> tuple[Any, ...]:
    """The states of trials that count."""
    from optuna.trial import TrialState

    return (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


def attempt(
    job: Job, study: "optuna.Study", asked: "optuna.trial.Trial", changes: Mapping[str, Any]
) -> Trial:
    """Train one recipe as far as it is worth it."""
    from optuna.trial import TrialState

    accuracy = None
    try:
        accuracy, whole = rehearsed(replace(job, recipe=replace(job.recipe, **changes)), asked)
        state = TrialState.COMPLETE if whole else TrialState.PRUNED
    except VitreousError:
        state = TrialState.FAIL  # it diverged, or its settings do not fit each other
    except KeyboardInterrupt:
        study.tell(asked, state=TrialState.FAIL)
        raise
    study.tell(asked, accuracy if state == TrialState.COMPLETE else None, state)
    words = {TrialState.COMPLETE: "finished", TrialState.PRUNED: "given up"}
    return Trial(asked.number, changes, accuracy, words.get(state, "failed"))


def rehearsed(job: Job, asked: "optuna.trial.Trial") -> tuple[float, bool]:
    """Validation accuracy, and whether the trial was trained to its end."""
    accuracy = 0.0
    with (
        TemporaryDirectory() as folder,
        interrupts_held() as interrupted,
        contextlib.closing(rehearse(job, Path(folder) / "run")) as events,
    ):
        for event in events:
            if interrupted():
                raise KeyboardInterrupt("stopped; the trials that have ended are kept")
            if isinstance(event, Epoch):
                accuracy = event.validation_accuracy
                asked.report(accuracy, event.epoch)
                if event.epoch < job.recipe.epochs and asked.should_prune():
                    return accuracy, False
    return accuracy, True


def best_of(folder: Path) -> Trial | None:
    """The best finished trial of a storage; none where there is none yet."""
    import optuna

    study = optuna.load_study(
        storage=f"sqlite:///{(folder / STORAGE).resolve()}", study_name="recipe"
    )
    complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    if not complete:
        return None
    best = max(complete, key=lambda trial: trial.value or 0.0)
    return Trial(best.number, best.params, best.value, "finished")
