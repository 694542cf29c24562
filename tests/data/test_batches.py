import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitreous import ConfigError
from vitreous.data.batches import batch_indices, steps_per_epoch

sizes = st.integers(1, 60)


def epoch(images, batch, **kwargs):
    steps = steps_per_epoch(images, batch, leave_out_last=False)
    return list(batch_indices(images, batch, steps=steps, **{"seed": 0, "epoch": 0} | kwargs))


@given(images=sizes, batch=sizes, seed=sizes, number=sizes)
@settings(deadline=None, max_examples=40)
def test_every_image_is_seen_once_an_epoch(images, batch, seed, number):
    batches = epoch(images, batch, seed=seed, epoch=number)
    assert sorted(torch.cat(batches).tolist()) == list(range(images))
    assert all(len(indices) == batch for indices in batches[:-1])
    assert len(batches) == -(-images // batch)


@given(images=sizes, batch=sizes, start=st.integers(0, 70))
@settings(deadline=None, max_examples=40)
def test_an_epoch_taken_up_in_its_middle_is_the_rest_of_it(images, batch, start):
    """TRN-05."""
    whole, rest = epoch(images, batch), epoch(images, batch, start=start)
    assert [b.tolist() for b in rest] == [b.tolist() for b in whole[start:]]


def test_epochs_and_seeds_have_orders_of_their_own():
    """TRN-05."""
    orders = [(0, 0), (0, 1), (1, 0), (1, 1)]
    drawn = {tuple(torch.cat(epoch(20, 4, seed=s, epoch=e)).tolist()) for s, e in orders}
    assert len(drawn) == 4
    assert tuple(range(20)) not in drawn


def test_the_order_does_not_know_the_batch_size_nor_the_world():
    torch.manual_seed(1)
    one = torch.cat(epoch(20, 4))
    torch.manual_seed(2)
    assert torch.equal(one, torch.cat(epoch(20, 7)))


def test_the_last_batch_is_left_out_on_request():
    """The published run takes 749 of 750 steps, though its last batch is whole."""
    assert steps_per_epoch(48_000, 64, leave_out_last=False) == 750
    assert steps_per_epoch(48_000, 64, leave_out_last=True) == 749
    assert steps_per_epoch(48_001, 64, leave_out_last=True) == 750
    batches = list(batch_indices(20, 8, steps=2, seed=0, epoch=0))
    assert [len(indices) for indices in batches] == [8, 8]


@given(images=st.integers(2, 60), batch=st.integers(1, 200))
@settings(deadline=None, max_examples=60)
def test_an_epoch_without_steps_is_refused_and_the_advice_works(images, batch):
    try:
        assert steps_per_epoch(images, batch, leave_out_last=True) >= 1
    except ConfigError as error:
        assert batch >= images
        better = int(str(error).split("use batch_size=")[1].split(" ")[0])
        assert steps_per_epoch(images, better, leave_out_last=True) >= 1


def test_the_refusal_holds_the_numbers():
    with pytest.raises(ConfigError, match="50 training images at batch_size=64 leave no step"):
        steps_per_epoch(50, 64, leave_out_last=True)
