import torch
from torch import nn
from torch.testing import assert_close

from vitreous.nn.pooling import AttentionPool, ClassPool, MeanPool


def test_the_class_token_is_the_first_and_nothing_else():
    tokens = torch.randn(2, 6, 8)
    changed = torch.cat([tokens[:, :1], torch.randn(2, 9, 8)], dim=1)
    assert torch.equal(ClassPool()(tokens), tokens[:, 0])
    assert torch.equal(ClassPool()(changed), tokens[:, 0])


def test_the_mean_leaves_prefix_tokens_out():
    tokens = torch.randn(2, 7, 8)
    changed = tokens.clone()
    changed[:, :3] = torch.randn(2, 3, 8) * 100
    pool = MeanPool(3)
    assert_close(pool(tokens), sum(tokens[:, i] for i in range(3, 7)) / 4)
    assert torch.equal(pool(tokens), pool(changed))


def test_the_mean_does_not_know_the_order():
    tokens = torch.randn(2, 7, 8)
    assert_close(MeanPool(0)(tokens), MeanPool(0)(tokens[:, torch.randperm(7)]))


def test_attention_pooling_does_not_know_the_order():
    pool, tokens = AttentionPool(8, 2), torch.randn(2, 7, 8)
    assert_close(pool(tokens), pool(tokens[:, torch.randperm(7)]))


def test_attention_pooling_is_torchs_attention_with_one_query():
    pool, tokens = AttentionPool(8, 2), torch.randn(3, 7, 8)
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    theirs.in_proj_weight.data, theirs.in_proj_bias.data = pool.attn.qkv.weight, pool.attn.qkv.bias
    theirs.out_proj.load_state_dict(pool.attn.proj.state_dict())
    query = pool.query.expand(3, 1, 8)
    assert_close(pool(tokens), theirs(query, tokens, tokens)[0][:, 0])


def test_attention_pooling_reads_every_token():
    pool, tokens = AttentionPool(8, 2), torch.randn(1, 7, 8, requires_grad=True)
    pool(tokens).sum().backward()
    assert tokens.grad.abs().sum(-1).gt(0).all()
