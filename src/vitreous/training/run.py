"""One seed, from data to a scored checkpoint in a folder."""

import math
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from copy import deepcopy
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vitreous.checkpoints import store
from vitreous.checkpoints.files import require_room, write_json
from vitreous.config import Recipe, ViTConfig
from vitreous.data.augment import affine
from vitreous.data.batches import batch_indices
from vitreous.data.dataset import Dataset
from vitreous.errors import RunError
from vitreous.frontends.image import normalise
from vitreous.models.classifier import build
from vitreous.objectives.classification import classification_loss
from vitreous.protocol.seeds import stream
from vitreous.protocol.splits import floor, training_and_validation
from vitreous.protocol.stopping import Patience
from vitreous.training.card import render_card
from vitreous.training.evaluate import Score, score
from vitreous.training.folder import (
    HISTORY,
    RUN,
    SNAPSHOT,
    Result,
    command_line,
    now,
    read_json,
    record_test,
    write_result,
)
from vitreous.training.interrupt import interrupts_held
from vitreous.training.job import Job, make_job
from vitreous.training.loop import Batch, Step, fit
from vitreous.training.memory import hold_memory
from vitreous.training.optimizers import make_optimizers, rate
from vitreous.training.precision import Working
from vitreous.training.report import record_mistakes, render_report
from vitreous.training.start import begin, hold_still, slow_down
from vitreous.training.state import Epoch, State, restore, snapshot

__all__ = ["Labelled", "rehearse", "result_of", "run", "score_test", "train"]

SECONDS_BETWEEN_SNAPSHOTS = 30.0
Item = TypeVar("Item")
Events: TypeAlias = Generator[Step | Epoch | Result, None, None]


def train(
    config: ViTConfig,
    source: str | Path | Dataset = "mnist",
    *,
    recipe: str | Recipe = "fast",
    seed: int = 0,
    out: str | Path = "runs/latest",
    resume: bool = False,
    device: str = "auto",
) -> Result:
    """Train one model, score it once on the test set, and write all of it to the folder `out`.

    Raises ConfigError, DataError or RunError before the first step where the settings, the data or
    the folder will not do. After Ctrl-C, which raises KeyboardInterrupt, `resume=True` goes on.
    torch's global generator is seeded anew at every step.
    """
    job = make_job(config, source, recipe=recipe, seed=seed, device=device)
    return result_of(job, out, resume=resume)


def result_of(job: Job, out: str | Path, *, resume: bool) -> Result:
    """The result of a job; raises KeyboardInterrupt, saved, after Ctrl-C."""
    events = run(job, Path(out), resume=resume)
    with interrupts_held() as interrupted, closing(events):
        for event in events:
            if isinstance(event, Result):
                return event
            if interrupted():
                break
    raise KeyboardInterrupt(f"stopped; go on with resume=True, out={str(out)!r}")


def run(job: Job, out: Path, *, resume: bool = False) -> Events:
    """Train, and report each step, each epoch and the result as it comes.

    A caller that stops listening stops the run: it is saved, and goes on with `resume=True` bit for
    bit as if it had not stopped. Raises RunError for a folder that holds another run.
    """
    state = yield from rehearse(job, out, resume=resume)
    result = finish(job, state, out)
    (out / SNAPSHOT).unlink()
    yield result


def rehearse(job: Job, out: Path, *, resume: bool = False) -> Generator[Step | Epoch, None, State]:
    """`run` without its end: only validation is scored, and the test set is never seen.

    Returns the state after the last epoch.
    """
    hold_memory()
    state = fresh_state(job)
    prepare_folder(job, out, state, resume=resume)
    yield from epochs(job, state, out)
    return state


def fresh_state(job: Job) -> State:
    """The state before the first step."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream(job.seed, "init"))
        model = build(job.config)
    model.class_names = list(job.dataset.class_names)
    model.image_input = job.dataset.input
    if job.start:
        begin(job.start, model)
    model = model.to(job.device)
    optimizers = make_optimizers(model, job.recipe)
    if job.start:
        slow_down(job.start, model, optimizers)
    state = State(
        working=Working(model, job.dtype),
        optimizers=optimizers,
        patience=Patience(job.recipe.patience, job.recipe.min_delta),
    )
    if job.recipe.average:
        state.average = {name: tensor.clone() for name, tensor in state.weights.items()}
    return state


def prepare_folder(job: Job, out: Path, state: State, *, resume: bool) -> None:
    """Find out before training whether this run may and can be written here."""
    described = job.describe()
    if resume:
        check_same_run(described, out)
        restore(state, out / SNAPSHOT)
        return
    if (out / RUN).exists():
        raise RunError(f"{out}: {occupied(out)}; choose another folder")
    weights = sum(tensor.nbytes for tensor in state.weights.values())
    require_room(out, 12 * weights + 1_000_000)  # a snapshot beside the one that it replaces
    # In this order: a folder with a job in it can always be resumed.
    snapshot(state, out / SNAPSHOT)
    write_json(out / RUN, {"command": command_line(), "started": now(), **described})


def occupied(out: Path) -> str:
    """What the run that is in a folder is waiting for."""
    if (out / SNAPSHOT).exists():
        return f"a run that has not ended is there (go on with: vitreous train --resume {out})"
    return "a run that has ended is there"


def check_same_run(described: dict[str, Any], out: Path) -> None:
    """Raise RunError where a folder holds another run than this one, or one that has ended."""
    recorded = read_json(out / RUN)
    for name in ("seed", "config", "recipe", "data_sha256", "start"):
        if recorded.get(name) != described.get(name):
            raise RunError(f"{out}: that run was started with another {name}; nothing was changed")
    if not (out / SNAPSHOT).exists():
        raise RunError(f"{out}: {occupied(out)}; there is nothing to resume")


def epochs(job: Job, state: State, out: Path) -> Generator[Step | Epoch, None, None]:
    """The training itself, from wherever the state is."""
    training, validation = training_and_validation(job.dataset.train_labels)
    train_data, validation_data = labelled(job, training), labelled(job, validation)
    saved = time.monotonic()
    # A run that stopped between an epoch's last step and its validation still owes the validation.
    while state.images or (state.step < job.steps and not state.patience.exhausted):
        for step in steps_of_epoch(job, state, train_data):
            if time.monotonic() - saved > SECONDS_BETWEEN_SNAPSHOTS:
                snapshot(state, out / SNAPSHOT)
                saved = time.monotonic()
            try:
                yield step
            except GeneratorExit:
                snapshot(state, out / SNAPSHOT)
                raise
        epoch = end_epoch(job, state, validation_data)
        write_json(out / HISTORY, [asdict(epoch) for epoch in state.history])
        snapshot(state, out / SNAPSHOT)
        yield epoch


class Labelled(NamedTuple):
    """Images (n, c, y, x) as uint8 and their labels, on the device for the whole run."""

    images: Tensor
    labels: Tensor


def labelled(job: Job, indices: NDArray[Any]) -> Labelled:
    """Some of the training images, on the device."""
    data = job.dataset
    return Labelled(
        torch.from_numpy(data.train_images[indices]).to(job.device),
        torch.from_numpy(data.train_labels[indices]).to(job.device),
    )


def steps_of_epoch(job: Job, state: State, data: Labelled) -> Iterator[Step]:
    """The steps left in this epoch; the state is up to date whenever one is reported."""
    total = job.steps
    steps = fit(
        state.working,
        partial(loss_of, smoothing=job.recipe.label_smoothing, still=job.frozen),
        batches(job, state, data),
        state.optimizers,
        rate=lambda step: rate(step, total, job.recipe),
        clip=job.recipe.clip,
    )
    for step, seconds in timed(steps):
        refuse_divergence(step.loss, f"step {step.number}", job.recipe)
        state.step += 1
        state.loss_sum += step.loss * step.images
        state.images += step.images
        state.seconds += seconds
        state.training_seconds += seconds
        state.follow(job.recipe.average)
        yield step


def refuse_divergence(loss: float, where: str, recipe: Recipe) -> None:
    """Raise RunError for a loss that is no number any more."""
    if not math.isfinite(loss):
        raise RunError(
            f"the run diverged: the loss of {where} is {loss}; try a smaller learning_rate "
            f"(now {recipe.learning_rate}) or matrix_rate (now {recipe.matrix_rate})"
        )


def timed(items: Iterator[Item]) -> Iterator[tuple[Item, float]]:
    """Each item with the seconds that it took to come."""
    while True:
        started = time.monotonic()
        try:
            item = next(items)
        except StopIteration:
            return
        yield item, time.monotonic() - started


def loss_of(model: nn.Module, batch: Batch, *, smoothing: float, still: bool) -> Tensor:
    """The objective of one batch; `still`: only the head is in training mode."""
    if still:
        hold_still(model)
    return classification_loss(model(batch.images), batch.labels, smoothing=smoothing)


def batches(job: Job, state: State, data: Labelled) -> Iterator[Batch]:
    """The batches left in this epoch, augmented and normalised."""
    epoch, before = len(state.history), len(state.history) * job.steps_per_epoch
    indices = batch_indices(
        len(data.labels),
        job.recipe.batch_size,
        steps=min(job.steps_per_epoch, job.steps - before),
        seed=job.seed,
        epoch=epoch,
        start=state.step - before,
    )
    for number, some in enumerate(indices, start=state.step):
        here = some.to(job.device)
        images = augmented(data.images[here], job.recipe, job.seed, number)
        torch.manual_seed(stream(job.seed, "dropout", number))
        yield Batch(number, normalise(images, job.dataset.input).to(job.dtype), data.labels[here])


def augmented(images: Tensor, recipe: Recipe, seed: int, step: int) -> Tensor:
    """The images of one step, changed at random where the recipe says so."""
    limits = {name: getattr(recipe, name) for name in ("rotate", "shift", "scale", "shear")}
    if not any(limits.values()):
        return images
    generator = torch.Generator().manual_seed(stream(seed, "augment", step))
    return affine(images.float(), generator, **limits)


def end_epoch(job: Job, state: State, data: Labelled) -> Epoch:
    """Validate, remember, and be ready for the next epoch."""
    started = time.monotonic()
    result = score(candidate(state), data.images, data.labels, job.dataset.input)
    refuse_divergence(result.loss, "validation", job.recipe)
    if state.patience.update(result.loss) and job.recipe.keep == "best":
        state.keep_best()
    state.seconds += time.monotonic() - started
    state.history.append(
        Epoch(
            epoch=len(state.history) + 1,
            steps=state.step,
            train_loss=state.loss_sum / state.images,
            validation_loss=result.loss,
            validation_accuracy=result.accuracy,
            seconds=state.seconds,
            images_per_second=state.images / state.training_seconds,
        )
    )
    state.loss_sum, state.images, state.training_seconds = 0.0, 0, 0.0
    return state.history[-1]


def candidate(state: State) -> nn.Module:
    """A model, in the working dtype, with the weights that would be kept if the run ended now."""
    if state.average is None:
        return state.working.model
    model = deepcopy(state.working.model)
    model.load_state_dict(state.average)
    return model


def finish(job: Job, state: State, out: Path) -> Result:
    """Score the kept weights in float32, the test set once, and write everything."""
    model = state.working.master
    last = job.recipe.keep == "last" or state.best is None
    model.load_state_dict(state.candidate if last else state.best or {})
    _, validation = training_and_validation(job.dataset.train_labels)
    validated = score(model, *labelled(job, validation), job.dataset.input)
    store.save(model, out)
    tested = score_test(model, job.dataset, job.device)
    record_test(out, "train", tested)
    result = Result(
        test_accuracy=tested.accuracy,
        n=tested.n,
        correct=tested.correct,
        floor=floor(job.dataset.test_labels),
        test_loss=tested.loss,
        validation_accuracy=validated.accuracy,
        validation_n=validated.n,
        train_seconds=state.seconds,
        epochs=len(state.history),
        steps=state.step,
        kept=kept(state, last=last),
        parameters=sum(p.numel() for p in model.parameters()),
        seed=job.seed,
        predictions_sha256=tested.predictions_sha256,
        weights_sha256=sha256((out / store.WEIGHTS).read_bytes()).hexdigest(),
    )
    write_result(out, result)
    record_mistakes(out, job.dataset, tested)
    render_report(out)
    render_card(out)
    return result


def kept(state: State, *, last: bool) -> str:
    """Which epoch's weights were kept, and why, in words."""
    what = "moving average of the weights" if state.average is not None else "weights"
    if last:
        return f"{what} after epoch {len(state.history)}, the last"
    return f"{what} after epoch {state.patience.best_epoch}, of the lowest validation loss"


def score_test(model: nn.Module, dataset: Dataset, device: torch.device) -> Score:
    """Score on the test set; the caller writes it into the ledger."""
    images = torch.from_numpy(dataset.test_images).to(device)
    labels = torch.from_numpy(dataset.test_labels).to(device)
    return score(model, images, labels, dataset.input)
