import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from vitreous import ShapeError
from vitreous.nn import attention as attention_module
from vitreous.nn.attention import Attention
from vitreous.nn.encoder import Block, DropPath, Encoder, LayerScale
from vitreous.nn.mlp import Mlp
from vitreous.nn.positions import angles, grid_coords

WIDTH, HEADS, HIDDEN = 8, 2, 16


def block(**kwargs) -> Block:
    """A small block whose norms are not the identity."""
    norms = [nn.LayerNorm(WIDTH) for _ in range(2)]
    for norm in norms:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return Block(norms[0], Attention(WIDTH, HEADS), norms[1], Mlp(WIDTH, HIDDEN), **kwargs)


def encoder(depth: int = 2, **kwargs) -> Encoder:
    return Encoder([block(**kwargs) for _ in range(depth)], nn.LayerNorm(WIDTH))


def silence(one: Block) -> None:
    """Let both branches write nothing."""
    for last in (one.attn.proj, one.mlp.fc2):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)


# blocks


def test_a_prenorm_block_whose_branches_write_nothing_is_the_identity():
    """ATT-07: the sum runs past the norm, so the mean of 5 stays."""
    one, x = block(), torch.randn(2, 5, WIDTH) + 5
    silence(one)
    assert torch.equal(one(x), x)


def test_a_postnorm_block_whose_branches_write_nothing_normalises_twice():
    one, x = block(post_norm=True), torch.randn(2, 5, WIDTH) + 5
    silence(one)
    assert torch.equal(one(x), one.norm2(one.norm1(x)))


def test_a_prenorm_block_is_its_formula():
    one, x = block(), torch.randn(2, 5, WIDTH)
    h = x + one.attn(one.norm1(x))
    assert torch.equal(one(x), h + one.mlp(one.norm2(h)))


def test_a_postnorm_block_is_its_formula():
    one, x = block(post_norm=True), torch.randn(2, 5, WIDTH)
    h = one.norm1(x + one.attn(x))
    assert torch.equal(one(x), one.norm2(h + one.mlp(h)))


@pytest.mark.parametrize("post_norm", [True, False])
def test_a_block_is_torchs_own_with_the_same_weights(post_norm):
    ours = block(post_norm=post_norm)
    theirs = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, "gelu", batch_first=True, norm_first=not post_norm
    )
    theirs.self_attn.in_proj_weight.data = ours.attn.qkv.weight.data
    theirs.self_attn.in_proj_bias.data = ours.attn.qkv.bias.data
    pairs = {
        theirs.self_attn.out_proj: ours.attn.proj,
        theirs.linear1: ours.mlp.fc1,
        theirs.linear2: ours.mlp.fc2,
        theirs.norm1: ours.norm1,
        theirs.norm2: ours.norm2,
    }
    for their_part, our_part in pairs.items():
        their_part.load_state_dict(our_part.state_dict())
    x = torch.randn(2, 5, WIDTH)
    assert_close(ours(x), theirs(x))


def test_layer_scale_multiplies_each_number_of_a_branch():
    scales = (LayerScale(WIDTH, 0.1), LayerScale(WIDTH, 0.1))
    one, x = block(scales=scales), torch.randn(2, 5, WIDTH)
    for scale in scales:
        assert torch.equal(scale(x), x * 0.1)
        scale.gamma.data = torch.randn(WIDTH)
    h = x + one.attn(one.norm1(x)) * scales[0].gamma
    assert_close(one(x), h + one.mlp(one.norm2(h)) * scales[1].gamma)


def test_layer_scale_of_zero_silences_a_block():
    one, x = block(scales=(LayerScale(WIDTH, 0.0), LayerScale(WIDTH, 0.0))), torch.randn(2, 5, 8)
    assert torch.equal(one(x), x)


# drop path


def test_drop_path_drops_whole_samples_and_rescales_the_rest():
    """ATT-09: kept 0.75 within four standard errors."""
    drop = DropPath(0.25)
    result = drop(torch.ones(1000, 4))
    kept = result[:, 0] > 0
    assert_close(result[kept], torch.full((int(kept.sum()), 4), 4 / 3))
    assert not result[~kept].any()
    assert abs(kept.float().mean() - 0.75) < 0.055
    assert abs(result.mean() - 1) < 0.073


def test_drop_path_is_the_identity_in_evaluation_and_at_rate_zero():
    """ATT-09."""
    x = torch.randn(100, 4)
    assert torch.equal(DropPath(0.25).eval()(x), x)
    assert torch.equal(DropPath(0.0)(x), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_drop_path_at_rate_one_is_zero_and_never_nan(dtype):
    """ATT-09."""
    x = torch.ones(100, 4, dtype=dtype, requires_grad=True)
    result = DropPath(1.0)(x)
    result.sum().backward()
    assert torch.equal(result, torch.zeros_like(x))
    assert torch.equal(x.grad, torch.zeros_like(x))


def test_drop_path_drops_each_branch_of_each_sample_by_itself():
    one, x = block(drop_path=0.5), torch.randn(1, 5, WIDTH)
    results = one(x.expand(64, -1, -1))
    looks = [x, x + 2 * one.attn(one.norm1(x))]
    paths = torch.cat([t for h in looks for t in (h, h + 2 * one.mlp(one.norm2(h)))])
    distances = (results[:, None] - paths).abs().amax((2, 3))
    assert (distances.amin(1) < 1e-4).all()
    assert distances.argmin(1).unique().tolist() == [0, 1, 2, 3]


# the encoder


@pytest.mark.parametrize("post_norm", [True, False])
def test_an_encoder_without_positions_does_not_know_the_order(post_norm):
    whole, x, order = encoder(post_norm=post_norm), torch.randn(2, 7, WIDTH), torch.randperm(7)
    assert_close(whole(x[:, order]), whole(x)[:, order])


def test_an_encoder_with_angles_knows_the_order():
    whole, x = encoder(), torch.randn(2, 6, WIDTH)
    order = torch.tensor([1, 0, 2, 3, 4, 5])
    read = lambda t: whole(t, angle=angles(grid_coords(2, 3), 2, 100.0))
    assert not torch.allclose(read(x[:, order]), read(x)[:, order], atol=1e-3)


def test_an_encoder_is_its_blocks_and_then_its_norm():
    whole, x = encoder(3), torch.randn(2, 5, WIDTH)
    h = x
    for one in whole.blocks:
        h = one(h)
    assert torch.equal(whole(x), whole.norm(h))


def test_mask_and_angle_reach_every_block():
    whole, x = encoder(), torch.randn(2, 4, WIDTH)
    angle, mask = angles(grid_coords(2, 2), 2, 100.0), torch.rand(2, 1, 4, 4) > 0.3
    mask |= torch.eye(4, dtype=torch.bool)
    h = x
    for one in whole.blocks:
        h = one(h, mask=mask, angle=angle)
    assert torch.equal(whole(x, mask=mask, angle=angle), whole.norm(h))
    assert not torch.allclose(whole(x, mask=mask, angle=angle), whole(x, mask=mask), atol=1e-3)


@pytest.mark.parametrize("post_norm", [True, False])
@pytest.mark.parametrize("keep", [1, 3, 6])
def test_what_is_kept_is_the_start_of_what_would_come_out(keep, post_norm):
    """With and without masks and angles; the last block only leaves work undone."""
    whole, x = encoder(post_norm=post_norm), torch.randn(2, 6, WIDTH)
    angle, seen = angles(grid_coords(2, 3), 2, 100.0), torch.rand(2, 1, 6, 6) > 0.3
    for kwargs in ({}, {"angle": angle}, {"mask": seen}, {"mask": seen[:, :, :1], "angle": angle}):
        kept = whole(x, keep=keep, **kwargs)
        assert_close(kept, whole(x, **kwargs)[:, :keep])


@pytest.mark.parametrize("post_norm", [True, False])
def test_padding_changes_nothing(post_norm):
    whole, x = encoder(post_norm=post_norm), torch.randn(2, 4, WIDTH)
    padded = torch.cat([x, torch.randn(2, 3, WIDTH)], dim=1)
    mask = (torch.arange(7) < 4).expand(2, 1, 1, 7)
    assert_close(whole(padded, mask=mask)[:, :4], whole(x))


@pytest.mark.parametrize("path", attention_module.PATHS)
@pytest.mark.parametrize("post_norm", [True, False])
@pytest.mark.parametrize("rubbish", [math.nan, math.inf, -math.inf])
def test_what_stands_in_a_masked_slot_never_leaks(rubbish, post_norm, path, monkeypatch):
    """Neither into a result nor into a gradient, on either path."""
    monkeypatch.setattr(attention_module, "choose_path", lambda *_, **__: path)
    whole, clean = encoder(post_norm=post_norm), torch.randn(2, 6, WIDTH)
    lengths = torch.tensor([4, 6])
    mask = (torch.arange(6) < lengths[:, None])[:, None, None]
    results = []
    for filling in (0.0, rubbish):
        x = clean.masked_fill(~mask[:, 0, 0, :, None], filling).requires_grad_()
        whole.zero_grad()
        out = whole(x, mask=mask)
        out.square().mean().backward()
        results.append([out, x.grad, *(p.grad.clone() for p in whole.parameters())])
    for without, with_rubbish in zip(*results, strict=True):
        assert with_rubbish.isfinite().all()
        assert torch.equal(without, with_rubbish)
    assert not results[1][1][0, 4:].any()


def test_a_token_that_any_query_may_read_is_kept():
    whole, x = encoder(), torch.randn(1, 3, WIDTH)
    mask = torch.ones(3, 3, dtype=torch.bool).tril()[None, None]
    causal = whole(x, mask=mask)
    assert_close(causal[:, :1], whole(x[:, :1]))
    assert_close(causal[:, :2], whole(x[:, :2], mask=mask[..., :2, :2]))
    for read in (1, 2):  # the last token is read by itself alone
        changed = x.clone()
        changed[:, read] = torch.randn(WIDTH)
        assert not torch.allclose(whole(changed, mask=mask)[:, 2], causal[:, 2], atol=1e-3)


def test_a_float_mask_that_hides_is_a_boolean_one():
    whole, x = encoder(), torch.randn(2, 5, WIDTH)
    seen = (torch.rand(2, 1, 5, 5) > 0.4) | torch.eye(5, dtype=torch.bool)
    added = torch.zeros(2, 1, 5, 5).masked_fill(~seen, -math.inf)
    assert_close(whole(x, mask=added), whole(x, mask=seen))


def test_an_encoder_refuses_a_mask_of_whole_numbers():
    """ATT-05."""
    with pytest.raises(ShapeError, match=r"not torch\.int64"):
        encoder()(torch.randn(2, 3, WIDTH), mask=torch.ones(2, 1, 3, 3, dtype=torch.int64))
