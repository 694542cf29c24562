from itertools import islice

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitreous.training.loop import Batch, Step, fit
from vitreous.training.precision import Working


def line() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(3, 2)


def batches(count: int = 6) -> list[Batch]:
    draw = torch.Generator().manual_seed(2)
    return [
        Batch(n, torch.randn(4, 3, generator=draw), torch.randint(2, (4,), generator=draw))
        for n in range(count)
    ]


def objective(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch.images), batch.labels)


def sgd(model: nn.Module, rate: float = 1.0) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for group in optimizer.param_groups:
        group["peak"] = group["lr"]
    return optimizer


def steps(model: nn.Module, those: list[Batch], **options: object):
    options = {"rate": lambda _step: 1.0} | options
    working = Working(model, torch.float32)
    return fit(working, objective, those, [sgd(model)], **options)


def by_hand(those: list[Batch], *, clip: float | None = None, rate=lambda _step: 1.0) -> nn.Linear:
    """Gradient descent without an optimizer, a loop or a library of ours."""
    model = line()
    for batch in those:
        gradients = torch.autograd.grad(objective(model, batch), list(model.parameters()))
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        factor = 1.0 if clip is None else min(1.0, clip / (norm.item() + 1e-6))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter -= rate(batch.number) * factor * gradient
    return model


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_steps_are_gradient_descent():
    model = line()
    list(steps(model, batches()))
    torch.testing.assert_close(weights(model), weights(by_hand(batches())))


@pytest.mark.parametrize("clip", [0.01, 0.3, 100.0])
def test_clipping_shortens_the_whole_gradient_and_keeps_its_direction(clip: float):
    model = line()
    list(steps(model, batches(), clip=clip))
    torch.testing.assert_close(weights(model), weights(by_hand(batches(), clip=clip)))


def test_a_clipped_step_is_exactly_as_long_as_the_clip():
    model, start = line(), weights(line())
    list(steps(model, batches(1), clip=0.01))
    assert (weights(model) - start).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_each_step_moves_at_its_own_rate():
    rate = [0.5, 0.0, 2.0, 1.0, 0.25, 0.1].__getitem__
    model = line()
    list(steps(model, batches(), rate=rate))
    torch.testing.assert_close(weights(model), weights(by_hand(batches(), rate=rate)))


def test_break_stops_between_two_steps_and_asks_for_no_further_batch():
    asked = []

    def counted():
        for batch in batches():
            asked.append(batch.number)
            yield batch

    model = line()
    for step in steps(model, counted()):
        if step.number == 2:
            break
    assert asked == [0, 1, 2]
    torch.testing.assert_close(weights(model), weights(by_hand(batches()[:3])))


def test_it_ends_when_the_batches_do_and_reports_loss_before_the_step():
    first = objective(line(), batches()[0]).item()
    reports = list(steps(line(), batches(3)))
    assert [report.number for report in reports] == [0, 1, 2]
    assert reports[0] == Step(0, first, 4)


def test_every_step_is_taken_in_training_mode():
    model = line()
    seen = []
    working = Working(model, torch.float32)

    def watching(model: nn.Module, batch: Batch) -> Tensor:
        seen.append(model.training)
        return objective(model, batch)

    for _step in islice(fit(working, watching, batches(), [sgd(model)], rate=lambda _: 1.0), 3):
        model.eval()
    assert seen == [True, True, True]
