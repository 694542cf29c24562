"""Positions and patch filters, against what is known of them."""

from dataclasses import replace

import pytest
import torch

from tests.inspection.pointed import CONFIG, untaught
from vitreous.errors import ConfigError
from vitreous.inspection.embedding import patch_filters, position_similarity, principal_filters


@pytest.mark.parametrize("positions", ["learned", "learned_axes", "sincos", "sincos_1d"])
def test_a_position_is_most_like_itself_wherever_it_stands(positions):
    similar = position_similarity(untaught(0, replace(CONFIG, positions=positions)))
    assert similar.shape == (5, 6, 5, 6)
    for row in range(5):
        for col in range(6):
            assert similar[row, col, row, col] == pytest.approx(1, abs=1e-5)
            assert divmod(int(similar[row, col].argmax()), 6) == (row, col)


def test_similarity_is_the_cosine_of_table_rows_without_the_prefix():
    model = untaught(0)
    table = model.pos_embed.table.detach()[1:]
    wanted = torch.nn.functional.cosine_similarity(table[8], table[23], dim=0)
    assert torch.allclose(position_similarity(model)[1, 2, 3, 5], wanted)


@pytest.mark.parametrize("positions", ["none", "rotary"])
def test_positions_that_add_nothing_cannot_be_compared(positions):
    with pytest.raises(ConfigError, match=f"positions='{positions}' add nothing"):
        position_similarity(untaught(0, replace(CONFIG, positions=positions)))


def test_a_filter_is_what_its_number_looks_for():
    """A patch that is a filter gives that number the filter's own squared length."""
    model = untaught(0)
    filters = patch_filters(model)
    image = filters[3].repeat(1, 5, 6)[None]
    tokens = model.patch_embed(image) - model.patch_embed.proj.bias
    assert torch.allclose(tokens[0, 7, 3], filters[3].square().sum(), atol=1e-5)


def test_principal_filters_hold_the_variance_from_the_most_on():
    basis = torch.linalg.qr(torch.randn(16, 2)).Q
    luck = torch.randn(500, 2) * torch.tensor([3.0, 1.0])
    filters = (luck @ basis.T).view(500, 1, 4, 4)
    best, shares = principal_filters(filters, 5)
    assert shares[0] == pytest.approx(0.9, abs=0.03)
    assert shares[:2].sum() == pytest.approx(1, abs=1e-4)
    assert abs(best[0].flatten() @ basis[:, 0]) > 0.99


def test_a_convolution_stem_shows_its_first_kernels():
    model = untaught(0, replace(CONFIG, stem="convolution"))
    assert patch_filters(model).shape == (16, 1, 3, 3)
