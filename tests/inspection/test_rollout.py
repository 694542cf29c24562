"""Rollout: residual included, rows normalised, layers in order."""

import pytest
import torch

from vitreous.config import ViTConfig
from vitreous.errors import ConfigError, ShapeError
from vitreous.inspection.record import record_attention
from vitreous.inspection.rollout import rollout
from vitreous.models.classifier import build

ONE = torch.tensor([[0.9, 0.1], [0.4, 0.6]])
TWO = torch.tensor([[0.5, 0.5], [0.2, 0.8]])
CONFIG = ViTConfig(image_size=8, patch_size=4, width=8, depth=3, heads=2, classes=3)


def test_two_layers_by_hand():
    """MAP-03."""
    wanted = torch.tensor([[0.7625, 0.2375], [0.275, 0.725]])
    assert torch.allclose(rollout([ONE, TWO]), wanted, atol=1e-6)


def test_the_order_of_layers_matters_and_the_residual_is_there():
    swapped = torch.tensor([[0.7175, 0.2825], [0.23, 0.77]])
    assert torch.allclose(rollout([TWO, ONE]), swapped, atol=1e-6)
    bare = torch.tensor([[0.65, 0.35], [0.5, 0.5]])
    assert not torch.allclose(rollout([ONE, TWO]), bare, atol=0.01)


@pytest.mark.parametrize("heads", ["mean", "max", "min"])
def test_rows_sum_to_one_however_heads_are_fused(heads):
    model = build(CONFIG).eval()
    with record_attention(model) as maps:
        model(torch.randn(2, 1, 8, 8))
    flow = rollout(maps, heads=heads)
    assert flow.shape == (2, 5, 5)
    assert torch.allclose(flow.sum(dim=-1), torch.ones(2, 5), atol=1e-6)


def test_identical_heads_fuse_to_themselves():
    same = ONE.expand(1, 3, 2, 2)
    for heads in ("mean", "max", "min"):
        assert torch.allclose(rollout([same], heads=heads)[0], (ONE + torch.eye(2)) / 2)


def test_a_last_layer_of_the_first_rows_gives_the_first_rows():
    model = build(CONFIG).train()
    images = torch.randn(2, 1, 8, 8)
    with record_attention(model) as first:
        model(images)
    with record_attention(model.eval()) as whole:
        model(images)
    assert torch.allclose(rollout(first), rollout(whole)[:, :1], atol=1e-6)


def test_maps_without_all_rows_are_refused():
    with pytest.raises(ShapeError, match="layer 0 has 1 query rows for 2 tokens"):
        rollout([ONE[:1], TWO])
    model = build(CONFIG).eval()
    with record_attention(model, queries=["class"], layers=[-1]) as maps:
        model(torch.randn(1, 1, 8, 8))
    with pytest.raises(ShapeError, match="record without queries="):
        rollout(maps)


def test_no_layers_and_unknown_fusions_are_refused():
    with pytest.raises(ConfigError, match="no layer was recorded"):
        rollout([])
    with pytest.raises(ConfigError, match="heads='median' must be one of mean, max, min"):
        rollout([ONE], heads="median")
    with pytest.raises(ShapeError, match="leave it out of layers="):
        rollout({"blocks.0.attn": ONE, "pool.attn": TWO[:1]})
