from itertools import islice

import numpy as np
import torch
from torch import nn

from tests.training.small import make_job
from vitreous.training.precision import Working
from vitreous.training.run import Labelled, fresh_state, labelled, steps_of_epoch
from vitreous.training.state import State


def data_of(job) -> Labelled:
    return labelled(job, np.arange(20))


def copies_agree(state: State) -> bool:
    pairs = zip(state.working.master.parameters(), state.working.model.parameters(), strict=True)
    return all(torch.equal(working, master.to(torch.bfloat16)) for master, working in pairs)


def test_the_working_copy_is_the_rounded_master_after_every_step():
    job = make_job(precision="bfloat16")
    state = fresh_state(job)
    assert copies_agree(state)
    for _step in steps_of_epoch(job, state, data_of(job)):
        assert copies_agree(state)
        assert all(p.dtype == torch.bfloat16 for p in state.working.model.parameters())
        assert all(p.dtype == torch.float32 for p in state.working.master.parameters())


def test_the_master_keeps_steps_that_bfloat16_would_round_away():
    master = nn.Linear(1, 1, bias=False)
    nn.init.ones_(master.weight)
    working = Working(master, torch.bfloat16)
    optimizer = torch.optim.SGD(master.parameters(), lr=2**-10)
    for _step in range(4):
        working.model(torch.ones(1, 1, dtype=torch.bfloat16)).sum().backward()
        working.hand_over_gradients()
        optimizer.step()
        working.take_weights()
    assert master.weight.item() == 1 - 4 * 2**-10
    assert working.model.weight.item() == 1 - 2**-8


def test_gradients_are_handed_over_once_and_none_is_left():
    working = Working(nn.Linear(2, 1), torch.bfloat16)
    working.model(torch.ones(3, 2, dtype=torch.bfloat16)).sum().backward()
    working.hand_over_gradients()
    assert working.master.weight.grad is not None
    assert working.master.weight.grad.tolist() == [[3.0, 3.0]]
    assert working.master.weight.grad.dtype == torch.float32
    assert all(p.grad is None for p in working.model.parameters())


def test_in_float32_the_working_copy_is_the_master_itself():
    model = nn.Linear(2, 1)
    working = Working(model, torch.float32)
    assert working.model is model
    model(torch.ones(3, 2)).sum().backward()
    gradient = model.weight.grad
    working.hand_over_gradients()
    assert model.weight.grad is gradient


def test_both_formats_start_from_the_same_weights_and_stay_near():
    ends = []
    for precision in ("float32", "bfloat16"):
        job = make_job(precision=precision)
        state = fresh_state(job)
        list(islice(steps_of_epoch(job, state, data_of(job)), 3))
        ends.append(torch.cat([p.detach().flatten() for p in state.working.master.parameters()]))
    assert not torch.equal(*ends)
    # Three AdamW steps of at most 0.01 each; rounding may turn a gradient near zero around.
    torch.testing.assert_close(*ends, atol=0.06, rtol=0)
    assert (ends[0] - ends[1]).abs().mean() < 0.005
