"""Train a reader on made-up strings: resumable, and the same weights for the same settings."""

import multiprocessing
import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import vitreous
from vitreous import settings
from vitreous.checkpoints.files import require_room, write_json
from vitreous.checkpoints.readers import load_reader, save_reader
from vitreous.config import Recipe
from vitreous.data.augment import affine
from vitreous.data.lines import pad
from vitreous.data.shards import SHARD, Strips, read_shard, shard_name, write_shard
from vitreous.data.sources import load_source
from vitreous.data.strings import RANGES, Bank, Drawn, draw_string, make_bank
from vitreous.errors import ConfigError, RunError
from vitreous.models.decoding import best_path, greedy, prefixes
from vitreous.models.reader import STOP, Reader, ReaderConfig, build_reader
from vitreous.objectives.reading import IGNORED, ctc_loss, writing_loss
from vitreous.protocol.seeds import stream
from vitreous.protocol.splits import training_and_validation
from vitreous.protocol.stopping import Patience
from vitreous.reading.calibration import fit_temperature, fit_threshold
from vitreous.reading.decide import Answer, decide, probability
from vitreous.training.folder import HISTORY, RUN, SNAPSHOT, command_line, now, read_json
from vitreous.training.loop import Step
from vitreous.training.memory import hold_memory
from vitreous.training.optimizers import make_optimizers, rate
from vitreous.training.precision import Working
from vitreous.training.state import Epoch, State, restore, snapshot

__all__ = [
    "RECIPE",
    "TEST_SEED",
    "ReaderJob",
    "bank_of",
    "calibrated",
    "decided",
    "read_strings",
    "resumed_job",
    "run_reader",
    "stages",
]

Events: TypeAlias = Generator[Step | Epoch, None, Reader]
STRINGS = "strings"
"""The folder of a run's drawn strings."""
SECONDS_BETWEEN_SNAPSHOTS = 60.0
TOGETHER = 4
"""Files of strings that are mixed: the newest and earlier ones, so that each is seen four times."""
CTC_SHARE = 0.3
"""Of the loss; the rest is the decoder's."""
HELD_OUT = 1_000_000
"""Seeds from here on draw strings that nothing is trained on."""
VALIDATION_SEED, TEST_SEED = HELD_OUT + 1, HELD_OUT + 2
"""Of the strings that settings are chosen on, and of those that are read once at the end; each is
drawn with its own split's digits."""

RECIPE = Recipe(
    optimizer="muon",
    learning_rate=1.5e-3,
    matrix_rate=0.02,
    batch_size=128,
    max_steps=4000,
    warmup=0.03,
    schedule="linear",
    average=0.998,
    rotate=2.0,
    shift=0.03,
    scale=0.08,
    shear=0.12,
)


AGAIN = replace(RECIPE, learning_rate=1e-3, matrix_rate=0.014)
"""For training on: two thirds of the rates."""


@dataclass(frozen=True, kw_only=True)
class ReaderJob:
    """What defines one run of a reader."""

    config: ReaderConfig = field(default_factory=ReaderConfig)
    recipe: Recipe = RECIPE
    seed: int = 0
    check_every: int = 500
    """Steps between two looks at the validation strings."""
    validation_strings: int = 1000
    strings: Literal["rough", "hard", "legible"] = "legible"
    """How far writing and paper go: see `data.strings.RANGES`."""
    start: str | None = None
    """The run folder or file whose weights are trained on; none begins with fresh ones."""

    def __post_init__(self) -> None:
        if self.recipe.max_steps is None:
            raise ConfigError("a reader is trained for max_steps steps; set it")
        if not 0 <= self.seed < HELD_OUT:
            raise ConfigError(
                f"seed={self.seed} must be between 0 and {HELD_OUT - 1}: those above draw the "
                "strings of validation and test"
            )
        for name in ("check_every", "validation_strings"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 1")

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole run."""
        return self.recipe.max_steps or 0

    @property
    def steps_per_file(self) -> int:
        """Steps until the next file of strings is taken up."""
        return TOGETHER * SHARD // self.recipe.batch_size

    @property
    def files(self) -> int:
        """Files of strings that the whole run needs."""
        return -(-self.steps // self.steps_per_file)

    def describe(self) -> dict[str, Any]:
        """Everything that a reader of the folder needs to run this again, as JSON values."""
        return {
            "kind": "reader",
            "seed": self.seed,
            "config": settings.to_dict(self.config),
            "recipe": settings.to_dict(self.recipe),
            "check_every": self.check_every,
            "validation_strings": self.validation_strings,
            "strings": self.strings,
            "start": self.start,
            "versions": {"vitreous": vitreous.__version__, "torch": str(torch.__version__)},
        }


def stages(out: Path) -> list[tuple[ReaderJob, Path]]:
    """The runs that make the weights of the package, each from the one before, and their folders.

    First rough strings, most of which can be read, then hard ones, and legible ones at last.
    """
    rough, hard, legible = (out / name for name in RANGES)
    longer = replace(AGAIN, max_steps=10_000)
    gentler = replace(AGAIN, learning_rate=7e-4, matrix_rate=0.01, max_steps=8000)
    return [
        (ReaderJob(strings="rough"), rough),
        (ReaderJob(strings="hard", recipe=longer, seed=1, start=str(rough)), hard),
        (ReaderJob(strings="legible", recipe=gentler, seed=2, start=str(hard)), legible),
    ]


def resumed_job(out: Path) -> ReaderJob:
    """The job that a run folder was started with. Raises RunError where it holds no reader's."""
    recorded = read_json(out / RUN)
    if recorded.get("kind") != "reader":
        raise RunError(f"{out}: no reader is trained there")
    try:
        return ReaderJob(
            config=settings.from_dict(ReaderConfig, recorded["config"]),
            recipe=settings.from_dict(Recipe, recorded["recipe"]),
            seed=recorded["seed"],
            check_every=recorded["check_every"],
            validation_strings=recorded["validation_strings"],
            strings=recorded["strings"],
            start=recorded["start"],
        )
    except (KeyError, TypeError) as error:
        raise RunError(f"{out / RUN}: {error} is absent or of the wrong kind") from error


@lru_cache
def bank_of(part: str) -> Bank:
    """The digits that strings of a part ("training", "validation", "test") are written with."""
    data = load_source("mnist")
    if part == "test":
        return make_bank(data.test_images, data.test_labels)
    training, validation = training_and_validation(data.train_labels)
    chosen = {"training": training, "validation": validation}[part]
    return make_bank(data.train_images[chosen], data.train_labels[chosen])


def run_reader(job: ReaderJob, out: Path, *, resume: bool = False) -> Events:
    """Train, and report each step and each look at the validation strings.

    A caller that stops listening stops the run: it is saved, and goes on with `resume=True`. The
    weights lie in `out` at the end. Raises RunError for a folder that holds another run.
    """
    hold_memory()
    state = fresh_state(job)
    prepare_folder(job, out, state, resume=resume)
    drawn = validation_strings(job)
    with drawing_ahead(job, out, state.step // job.steps_per_file):
        yield from steps(job, state, out, drawn)
    model = calibrated(candidate(state), drawn)
    save_reader(model, out, facts={"run": job.describe(), "command": command_line()})
    (out / SNAPSHOT).unlink()
    return model


def fresh_state(job: ReaderJob) -> State:
    """The state before the first step."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream(job.seed, "init"))
        model = build_reader(job.config)
    if job.start is not None:
        model.load_state_dict(starting_weights(job, job.start))
    state = State(
        working=Working(model, getattr(torch, job.recipe.precision)),
        optimizers=make_optimizers(model, job.recipe),
        patience=Patience(None, 0.0),
    )
    if job.recipe.average:
        state.average = {name: tensor.clone() for name, tensor in state.weights.items()}
    return state


def starting_weights(job: ReaderJob, place: str) -> dict[str, Tensor]:
    """The weights of an earlier run. Raises RunError where they are another model's."""
    earlier = load_reader(place)
    if earlier.config != job.config:
        raise RunError(f"{place} holds {earlier.config}, and this run is of {job.config}")
    return earlier.state_dict()


def prepare_folder(job: ReaderJob, out: Path, state: State, *, resume: bool) -> None:
    """Find out before training whether this run may and can be written here."""
    if resume:
        if resumed_job(out) != job:
            raise RunError(f"{out}: that run was started with other settings")
        if not (out / SNAPSHOT).exists():
            raise RunError(f"{out}: that run has ended; there is nothing to resume")
        restore(state, out / SNAPSHOT)
        return
    if (out / RUN).exists():
        raise RunError(f"{out}: a run is there; go on with --resume {out}, or choose another")
    require_room(out, job.files * SHARD * 3500 + 100_000_000)
    (out / STRINGS).mkdir(exist_ok=True)
    snapshot(state, out / SNAPSHOT)
    write_json(out / RUN, {"command": command_line(), "started": now(), **job.describe()})


@contextmanager
def drawing_ahead(job: ReaderJob, out: Path, first: int) -> Iterator[None]:
    """Inside, another process draws the strings that training will need; they are the same ones."""
    context = multiprocessing.get_context("spawn")
    arguments = (str(out / STRINGS), job.seed, first, job.files, job.strings)
    process = context.Process(target=draw_files, args=arguments, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def draw_files(folder: str, seed: int, first: int, files: int, strings: str) -> None:
    """Draw files of strings, one after the other, politely. Ctrl-C is for the one that trains."""
    os.nice(6)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    for number in range(first, files):
        bank = bank_of("training")
        write_shard(Path(folder), bank, seed, number, SHARD, ranges=RANGES[strings])


def strings_of(job: ReaderJob, out: Path, number: int) -> Strips:
    """A file of strings, waited for while it is being drawn, and drawn here if nobody does."""
    path = out / STRINGS / shard_name(number)
    started = time.monotonic()
    while not path.exists() and multiprocessing.active_children():
        if time.monotonic() - started > 600:
            break
        time.sleep(0.2)
    bank, ranges = bank_of("training"), RANGES[job.strings]
    write_shard(out / STRINGS, bank, job.seed, number, SHARD, ranges=ranges)
    return read_shard(out / STRINGS, number)


def steps(job: ReaderJob, state: State, out: Path, drawn: list[Drawn]) -> Iterator[Step | Epoch]:
    """The training itself, from wherever the state is."""
    saved = time.monotonic()
    parameters = list(state.working.master.parameters())
    for images, widths, texts in batches(job, state, out):
        if time.monotonic() - saved > SECONDS_BETWEEN_SNAPSHOTS:
            snapshot(state, out / SNAPSHOT)
            saved = time.monotonic()
        started = time.monotonic()
        loss = take_step(job, state, parameters, images, widths, texts)
        state.seconds += time.monotonic() - started
        state.training_seconds += time.monotonic() - started
        try:
            yield Step(state.step - 1, loss, len(texts))
        except GeneratorExit:
            snapshot(state, out / SNAPSHOT)
            raise
        if state.step % job.check_every == 0 or state.step == job.steps:
            yield look(state, drawn)
            write_json(out / HISTORY, [asdict(one) for one in state.history])
            snapshot(state, out / SNAPSHOT)


def take_step(
    job: ReaderJob,
    state: State,
    parameters: list[nn.Parameter],
    images: Tensor,
    widths: Tensor,
    texts: list[str],
) -> float:
    """One optimizer step; returns the loss."""
    model = state.working.model
    model.train()
    dtype = next(model.parameters()).dtype
    generator = torch.Generator().manual_seed(stream(job.seed, "augment", state.step))
    change = job.recipe
    images = affine(
        images,
        generator,
        rotate=change.rotate,
        shift=change.shift,
        scale=change.scale,
        shear=change.shear,
    )
    loss = loss_of(model, images.to(dtype), widths, texts)
    loss.backward()
    state.working.hand_over_gradients()
    nn.utils.clip_grad_norm_(parameters, change.clip or float("inf"))
    factor = rate(state.step, job.steps, change)
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        optimizer.step()
        optimizer.zero_grad()
    state.working.take_weights()
    value = loss.item()
    if not np.isfinite(value):
        raise RunError(f"the run diverged at step {state.step}; try smaller rates")
    state.step += 1
    state.loss_sum += value * len(texts)
    state.images += len(texts)
    state.follow(change.average)
    return value


def loss_of(model: nn.Module, images: Tensor, widths: Tensor, texts: list[str]) -> Tensor:
    """Both arms' losses, weighed."""
    before = prefixes(texts)
    lengths = torch.tensor([len(text) for text in texts])
    places = torch.arange(before.shape[1])
    wanted = torch.cat([before[:, 1:], before[:, :1]], dim=1)
    wanted = wanted.where(places < lengths[:, None], IGNORED)
    wanted = wanted.where(places != lengths[:, None], STOP)
    written, columns, real = model(images, widths, before)
    digits = before[:, 1:].clamp(max=9)
    return (1 - CTC_SHARE) * writing_loss(written, wanted) + CTC_SHARE * ctc_loss(
        columns, real, digits, lengths
    )


Batch: TypeAlias = tuple[Tensor, Tensor, list[str]]


def batches(job: ReaderJob, state: State, out: Path) -> Iterator[Batch]:
    """The batches left, each a function of the seed and the step."""
    while state.step < job.steps:
        number, done = divmod(state.step, job.steps_per_file)
        files = [strings_of(job, out, one) for one in mixed(job.seed, number)]
        for chosen in batch_rows(job, number, files)[done:]:
            rows = chosen.tolist()
            strips = [files[one // SHARD].strip(one % SHARD) for one in rows]
            texts = [files[one // SHARD].texts[one % SHARD] for one in rows]
            images, widths = pad(strips)
            # In training the ground behind a line's end is paper, which saves the masks.
            yield images, torch.full_like(widths, images.shape[3]), texts
            if state.step >= job.steps:
                return


def mixed(seed: int, number: int) -> list[int]:
    """Which files are mixed when this one is taken up: it, and earlier ones."""
    rng = np.random.default_rng(stream(seed, "files", number))
    earlier = rng.choice(number, min(TOGETHER - 1, number), replace=False) if number else []
    chosen = [number, *map(int, earlier)]
    return (chosen * TOGETHER)[:TOGETHER]


def batch_rows(job: ReaderJob, number: int, files: list[Strips]) -> list[NDArray[np.int64]]:
    """Which strings each batch of a file's steps holds: of like width, in random order."""
    rng = np.random.default_rng(stream(job.seed, "shuffle", number))
    widths = np.concatenate([one.widths for one in files])
    order = np.lexsort([rng.random(len(widths)), widths // 8])
    count, size = job.steps_per_file, job.recipe.batch_size
    start = int(rng.integers(0, len(widths) - count * size + 1))
    rows = order[start : start + count * size].reshape(count, size)
    return list(rows[rng.permutation(count)])


def validation_strings(job: ReaderJob) -> list[Drawn]:
    """Strings of validation digits, the same in every run."""
    bank = bank_of("validation")
    ranges, count = RANGES[job.strings], job.validation_strings
    return [draw_string(bank, VALIDATION_SEED, index, ranges=ranges) for index in range(count)]


def candidate(state: State) -> Reader:
    """The model that would be kept if the run ended now."""
    model = deepcopy(state.working.master)
    model.load_state_dict(state.candidate)
    return model.eval()  # pyright: ignore


def calibrated(model: Reader, drawn: list[Drawn]) -> Reader:
    """The model with the temperature and the threshold that validation strings ask for."""
    answers = decided(model, drawn)
    logs = [answer.log_probability for answer in answers]
    right = [answer.text == one.text for answer, one in zip(answers, drawn, strict=True)]
    model.temperature = fit_temperature(logs, right)
    chances = [probability(log, model.temperature) for log in logs]
    model.threshold = fit_threshold(chances, right)
    return model


@torch.no_grad()
def decided(model: Reader, drawn: list[Drawn], size: int = 100) -> list[Answer]:
    """What reading answers for each string, by both arms."""
    order = sorted(range(len(drawn)), key=lambda index: drawn[index].levels.shape[1])
    answers: dict[int, Answer] = {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        memory = model.see(*pad([drawn[row].levels for row in rows]))
        # Without rules there is always an answer.
        answers |= {r: a for r, a in zip(rows, decide(model, memory), strict=True) if a}
    return [answers[row] for row in range(len(drawn))]


def look(state: State, drawn: list[Drawn]) -> Epoch:
    """How good the candidate is on the validation strings."""
    written, _ = read_strings(candidate(state), drawn)
    right = np.mean([text == one.text for text, one in zip(written, drawn, strict=True)])
    seen = Epoch(
        epoch=len(state.history) + 1,
        steps=state.step,
        train_loss=state.loss_sum / max(state.images, 1),
        validation_loss=float(1 - right),
        validation_accuracy=float(right),
        seconds=state.seconds,
        images_per_second=state.images / max(state.training_seconds, 1e-9),
    )
    state.history.append(seen)
    state.loss_sum, state.images, state.training_seconds = 0.0, 0, 0.0
    return seen


@torch.no_grad()
def read_strings(model: Reader, drawn: list[Drawn], size: int = 100) -> tuple[list[str], list[str]]:
    """What the decoder writes, greedily, and what the CTC head says, for each string."""
    order = sorted(range(len(drawn)), key=lambda index: drawn[index].levels.shape[1])
    written, columns = [""] * len(drawn), [""] * len(drawn)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        memory = model.see(*pad([drawn[row].levels for row in rows]))
        for row, one, quick in zip(
            rows,
            greedy(model, memory),
            best_path(model.columns(memory), memory.real),
            strict=True,
        ):
            written[row], columns[row] = one.text if one else "", quick
    return written, columns
