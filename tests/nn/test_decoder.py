"""What a token of the decoder may know: what came before it, and what is real in the picture."""

import pytest
import torch

from vitreous.nn.decoder import Decoder, DecoderBlock, causal_mask
from vitreous.nn.mlp import Mlp


@pytest.fixture
def decoder() -> Decoder:
    blocks = [DecoderBlock(16, 2, Mlp(16, 24)) for _ in range(2)]
    return Decoder(blocks, torch.nn.LayerNorm(16)).double().eval()


def inputs(q: int = 5, k: int = 7):
    x, context = torch.randn(2, q, 16).double(), torch.randn(2, k, 16).double()
    return x, context, torch.ones(2, k, dtype=torch.bool)


def test_a_token_never_hears_of_those_after_it(decoder):
    x, context, mask = inputs()
    before = decoder(x, context, mask=mask)
    x[:, 3:] = torch.randn(2, 2, 16).double()
    after = decoder(x, context, mask=mask)
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert (after[:, 3:] - before[:, 3:]).abs().min() > 1e-6


def test_a_token_hears_of_itself_and_of_those_before_it(decoder):
    x, context, mask = inputs()
    before = decoder(x, context, mask=mask)
    x[:, 0] += torch.randn(16).double()  # a shift by one number would vanish in the norm
    assert ((decoder(x, context, mask=mask) - before).abs().amax(dim=-1) > 1e-6).all()


@pytest.mark.parametrize("dirt", [0.0, 1e6, float("inf"), float("nan")])
def test_what_lies_in_a_padded_place_of_the_picture_changes_nothing(decoder, dirt: float):
    x, context, mask = inputs()
    mask[:, 5:] = False
    context[:, 5:] = dirt
    short = decoder(x, context[:, :5], mask=mask[:, :5])
    torch.testing.assert_close(decoder(x, context, mask=mask), short)


def test_every_real_place_of_the_picture_is_looked_at(decoder):
    x, context, mask = inputs()
    before = decoder(x, context, mask=mask)
    for place in range(7):
        changed = context.clone()
        changed[:, place] += torch.randn(16).double()
        assert (decoder(x, changed, mask=mask) - before).abs().max() > 1e-6


def test_the_causal_mask_is_a_triangle():
    assert causal_mask(4)[0, 0].sum(dim=1).tolist() == [1, 2, 3, 4]
