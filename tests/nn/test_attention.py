import pytest
import torch
from jaxtyping import TypeCheckError
from torch import nn
from torch.testing import assert_close

from vitreous import ShapeError
from vitreous.nn import attention as module
from vitreous.nn.attention import (
    Attend,
    Attention,
    attend_fused,
    attend_plain,
    attention_weights,
    choose_path,
    merge_heads,
    split_heads,
)
from vitreous.nn.positions import angles, grid_coords

PATHS = [attend_plain, attend_fused]
CAUSAL = torch.ones(3, 3, dtype=torch.bool).tril()[None, None]


def qkv(*, queries=5, keys=7, dtype=torch.float32, requires_grad=False):
    shapes = ((2, 3, queries, 4), (2, 3, keys, 4), (2, 3, keys, 4))
    return [torch.randn(s).to(dtype).requires_grad_(requires_grad) for s in shapes]


def masks(dtype=torch.float32):
    """Every kind of mask for 5 queries and 7 keys, of 2 samples and 3 heads."""
    seen = torch.rand(2, 3, 5, 7) > 0.5
    seen[..., 0] = True
    dark = seen.clone()
    dark[0, :, 2] = False
    dark[1, 1] = False
    bias = torch.randn(2, 3, 5, 7).to(dtype)
    hide = lambda mask: bias.masked_fill(~mask, float("-inf"))
    return {
        "none": None,
        "boolean": seen,
        "boolean, dark rows": dark,
        "for keys": seen[:, :1, :1],
        "added": bias,
        "added, hiding": hide(seen),
        "added, dark rows": hide(dark),
    }


# the definition


def test_weights_are_a_distribution_over_the_keys():
    q, k, _ = qkv()
    assert_close(attention_weights(q, k).sum(-1), torch.ones(2, 3, 5))
    assert_close(attention_weights(torch.zeros_like(q), k), torch.full((2, 3, 5, 7), 1 / 7))


@pytest.mark.parametrize(("width", "heads"), [(4, 2), (12, 3), (16, 4)])
def test_scores_are_divided_by_the_root_of_the_numbers_per_head(width, heads):
    """ATT-02: 12 in 3 heads tells the head size from the head count."""
    size = width // heads
    q = torch.ones(1, 1, 1, size)
    k = torch.stack([torch.ones(size), torch.zeros(size)])[None, None]
    first = attention_weights(q, k)[0, 0, 0, 0]
    assert_close(first, torch.tensor(size / size**0.5).sigmoid())
    if size == 2:
        assert_close(first, torch.tensor(0.804430))


@pytest.mark.parametrize(("width", "heads"), [(4, 2), (12, 3)])
def test_a_layer_of_attention_scales_by_its_head_size(width, heads):
    """ATT-02, through the layer."""
    layer, x = Attention(width, heads), torch.randn(2, 5, width)
    seen = []
    layer.attend.register_forward_hook(lambda _, args, result: seen.append((args, result)))
    layer(x)
    (q, k, v), read = seen[0]
    scores = torch.einsum("bhqe,bhke->bhqk", q, k) / (width / heads) ** 0.5
    assert_close(read, torch.einsum("bhqk,bhke->bhqe", scores.softmax(-1), v))


def test_heads_take_consecutive_numbers_and_give_them_back():
    """ATT-01."""
    outputs = torch.arange(1.0, 9.0).view(1, 2, 2, 2)
    assert merge_heads(outputs).tolist() == [[[1, 2, 5, 6], [3, 4, 7, 8]]]
    tokens = torch.tensor([[[0.0, 1, 2, 3], [4, 5, 6, 7]]])
    assert split_heads(tokens, 2).tolist() == [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]]
    x = torch.randn(2, 5, 12)
    assert torch.equal(merge_heads(split_heads(x, 3)), x)


# masks


def test_true_in_a_mask_means_may_be_read():
    """ATT-05: a mask in the other sense is turned over by the caller."""
    q = torch.zeros(1, 1, 3, 2)
    expected = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]])
    ignored = torch.ones(3, 3, dtype=torch.bool).triu(1)[None, None]
    assert_close(attention_weights(q, q, CAUSAL)[0, 0], expected)
    assert_close(attention_weights(q, q, ~ignored)[0, 0], expected)


@pytest.mark.parametrize("attend", PATHS)
def test_a_float_mask_is_added_and_a_boolean_one_chooses(attend):
    """ATT-05."""
    q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.eye(2)[None, None]
    added, chosen = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[True, False]]]])
    assert_close(attend(q, k, v, mask=added).flatten(), torch.tensor([0.731059, 0.268941]))
    assert attend(q, k, v, mask=chosen).flatten().tolist() == [1, 0]


def test_a_mask_of_whole_numbers_is_refused():
    """ATT-05: nobody can know its sense. The checked package refuses it at the signature."""
    q, k, v = qkv()
    mask = torch.ones(1, 1, 5, 7, dtype=torch.int64)
    with pytest.raises(TypeCheckError):
        attention_weights(q, k, mask)
    with pytest.raises(ShapeError, match=r"boolean .* or float .* not torch\.int64"):
        attend_fused(q, k, v, mask=mask)
    with pytest.raises(ShapeError, match=r"not torch\.int64"):
        Attention(12, 3)(torch.randn(1, 5, 12), mask=mask[..., :5])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("attend", PATHS)
@pytest.mark.parametrize("kind", ["boolean", "added"])
def test_a_row_that_may_read_nothing_is_zero_and_so_is_its_gradient(attend, dtype, kind):
    """ATT-03."""
    ones = lambda: torch.ones(1, 1, 2, 2, dtype=dtype, requires_grad=True)
    q, k = ones(), ones()
    v = torch.tensor([[[[1.0, 2], [3, 4]]]], dtype=dtype, requires_grad=True)
    mask = torch.tensor([[[[True, True], [False, False]]]])
    if kind == "added":
        mask = torch.zeros(1, 1, 2, 2, dtype=dtype).masked_fill(~mask, float("-inf"))
    read = attend(q, k, v, mask=mask)
    read.sum().backward()
    assert read[0, 0].tolist() == [[2, 3], [0, 0]]
    assert all(t.grad.isfinite().all() for t in (q, k, v))
    assert q.grad[0, 0, 1].tolist() == [0, 0]
    assert_close(v.grad, torch.full_like(v, 0.5))


@pytest.mark.parametrize("attend", [attention_weights, *PATHS])
def test_a_mask_fits_into_half_precision(attend):
    """ATT-06: -1e9 does not."""
    q, k = torch.zeros(1, 1, 1, 3).half(), torch.zeros(1, 1, 3, 3).half()
    v = torch.eye(3)[None, None].half()
    mask = torch.tensor([[[[True, True, False]]]])
    run = lambda q, k, v: (
        attend(q, k, mask) if attend is attention_weights else attend(q, k, v, mask=mask)
    )
    assert run(q, k, v).flatten().tolist() == [0.5, 0.5, 0]
    with torch.autocast("cpu", dtype=torch.float16):
        assert run(q.float(), k.float(), v.float()).flatten().tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("attend", PATHS)
def test_a_float_mask_may_be_more_precise_than_the_tokens(attend):
    q, k, v = qkv(dtype=torch.bfloat16)
    mask = torch.randn(1, 1, 5, 7).bfloat16()
    assert torch.equal(attend(q, k, v, mask=mask.float()), attend(q, k, v, mask=mask))
    dark = torch.full((1, 1, 5, 7), -1e9)  # -inf in half precision
    assert not attend(q.half(), k.half(), v.half(), mask=dark).any()


# the fast path


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", masks())
def test_the_fused_path_is_the_plain_one(dtype, kind):
    results = []
    for attend in PATHS:
        torch.manual_seed(0)
        tensors = qkv(dtype=dtype, requires_grad=True)
        read = attend(*tensors, mask=masks(dtype)[kind])
        (read * torch.linspace(-1, 1, 4, dtype=dtype)).sum().backward()
        results.append([read, *(t.grad for t in tensors)])
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    for plain, fused in zip(*results, strict=True):
        assert_close(plain, fused, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("attend", PATHS)
def test_dropout_drops_weights_and_keeps_their_mean(attend):
    q, k, v = torch.zeros(4, 4, 64, 8), torch.zeros(4, 4, 32, 8), torch.ones(4, 4, 32, 8)
    read = attend(q, k, v, dropout=0.5)
    assert read.std() > 0.05
    assert_close(read.mean(), torch.tensor(1.0), atol=0.02, rtol=0)


def test_the_plain_path_is_for_training_in_bfloat16_on_a_cpu():
    assert choose_path("cpu", torch.bfloat16, training=True) == "plain"
    assert choose_path("cpu", torch.bfloat16, training=False) == "fused"
    assert choose_path("cpu", torch.float32, training=True) == "fused"
    assert choose_path("cuda", torch.bfloat16, training=True) == "fused"


def test_both_paths_are_taken(monkeypatch):
    taken = []
    for name, path in list(module.PATHS.items()):
        spy = lambda *args, name=name, path=path, **kwargs: (
            taken.append(name) or path(*args, **kwargs)
        )
        monkeypatch.setitem(module.PATHS, name, spy)
    layer, x = Attention(8, 2), torch.randn(1, 3, 8)
    layer(x)
    layer.bfloat16()(x.bfloat16())
    with torch.no_grad():
        layer(x.bfloat16())
    layer.eval()(x.bfloat16())  # what decides is whether a gradient will be asked for
    assert taken == ["fused", "plain", "fused", "plain"]


def test_the_choice_of_path_does_not_change_the_result(monkeypatch):
    layer, x = Attention(8, 2), torch.randn(2, 5, 8)
    results = []
    for path in module.PATHS:
        monkeypatch.setattr(module, "choose_path", lambda *_, path=path, **__: path)
        results.append(layer(x))
    assert_close(*results)


# the layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", [None, CAUSAL])
def test_attention_is_torchs_own_with_the_same_weights(bias, mask):
    ours, theirs = Attention(12, 3, bias=bias), nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.in_proj_weight.data = ours.qkv.weight.data
    if bias:
        theirs.in_proj_bias.data = nn.init.normal_(ours.qkv.bias).data
    theirs.out_proj.load_state_dict(ours.proj.state_dict())
    x = torch.randn(2, 3, 12)
    ignored = None if mask is None else ~mask[0, 0]
    expected, _ = theirs(x, x, x, attn_mask=ignored)
    assert_close(ours(x, mask=mask), expected)
    context = torch.randn(2, 4, 12)
    assert_close(ours(x, context), theirs(x, context, context)[0])


@pytest.mark.parametrize("bias", [True, False])
def test_reading_oneself_as_context_is_self_attention(bias):
    layer, x = Attention(12, 3, bias=bias), torch.randn(2, 5, 12)
    assert_close(layer(x, x), layer(x))


def test_a_query_of_a_context_reads_its_keys_and_not_itself():
    layer, x, context = Attention(12, 3), torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    alone = [layer(x[:, i : i + 1], context) for i in range(5)]
    assert_close(layer(x, context), torch.cat(alone, dim=1))
    assert_close(layer(x, context.flip(1)), layer(x, context))


def test_a_hidden_token_is_never_read():
    layer, x = Attention(12, 3), torch.randn(2, 3, 12)
    changed = x.clone()
    changed[:, 2] = torch.randn(2, 12)
    one, other = layer(x, mask=CAUSAL), layer(changed, mask=CAUSAL)
    assert torch.equal(one[:, :2], other[:, :2])
    assert not torch.allclose(one[:, 2], other[:, 2])


def test_rotary_attention_sees_offsets_and_not_places():
    layer, x = Attention(width=8, heads=1), torch.randn(1, 4, 8)
    here = grid_coords(2, 2)
    read = lambda coords: layer(x, angle=angles(coords, 4, 100.0))
    assert_close(read(here), read(here + torch.tensor([3.0, 5.0])))
    assert not torch.allclose(read(here), read(here * 2), atol=1e-4)
    assert not torch.allclose(read(here), layer(x), atol=1e-4)


def test_angles_turn_queries_and_keys_and_leave_values():
    layer, x, angle = Attention(8, 2), torch.randn(1, 4, 8), angles(grid_coords(2, 2), 2, 100.0)
    seen = []
    layer.attend.register_forward_pre_hook(lambda _, args: seen.append(args))
    layer(x)
    layer(x, angle=angle)
    (q, k, v), (turned_q, turned_k, turned_v) = seen
    assert torch.equal(v, turned_v)
    assert_close(q.norm(dim=-1), turned_q.norm(dim=-1))
    assert_close(k.norm(dim=-1), turned_k.norm(dim=-1))
    assert not torch.allclose(q[:, :, 1:], turned_q[:, :, 1:])


def test_a_hook_on_attend_sees_what_the_weights_are_made_of():
    layer, x = Attention(8, 2), torch.randn(2, 5, 8)
    maps = []
    handle = layer.attend.register_forward_hook(
        lambda _, args, __: maps.append(attention_weights(args[0], args[1]))
    )
    inside = layer(x)
    handle.remove()
    v = split_heads(layer.qkv(x).chunk(3, dim=-1)[2], 2)
    assert_close(layer.proj(merge_heads(maps[0] @ v)), inside)
    assert torch.equal(inside, layer(x))


def test_attend_holds_nothing():
    assert not Attend(0.5).state_dict()


def test_dropout_of_weights_is_off_in_evaluation():
    """ATT-08: a number handed to the fused kernel knows nothing of eval()."""
    noisy, x = Attention(12, 3, dropout=0.5, weight_dropout=0.5), torch.randn(2, 5, 12)
    quiet = Attention(12, 3)
    quiet.load_state_dict(noisy.state_dict())
    assert not torch.equal(noisy(x), noisy(x))
    noisy.eval()
    assert torch.equal(noisy(x), noisy(x))
    assert torch.equal(noisy(x), quiet(x))
