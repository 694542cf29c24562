import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from vitreous.nn.mlp import ACTIVATIONS, Mlp, SwiGLU

VALUES = {
    "gelu": (0.841345, -0.158655),
    "gelu_tanh": (0.841192, -0.158808),
    "quick_gelu": (0.845796, -0.154204),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_has_its_published_values(name):
    """CKP-02."""
    assert_close(ACTIVATIONS[name](torch.tensor([1.0, -1.0])), torch.tensor(VALUES[name]))


def test_activations_are_their_formulas():
    x = torch.linspace(-5, 5, 101, dtype=torch.float64)
    cubic = (x + 0.044715 * x**3) * math.sqrt(2 / math.pi)
    formulas = {
        "gelu": x * (1 + torch.erf(x / math.sqrt(2))) / 2,
        "gelu_tanh": x * (1 + cubic.tanh()) / 2,
        "quick_gelu": x / (1 + (-1.702 * x).exp()),
    }
    for name, expected in formulas.items():
        assert_close(ACTIVATIONS[name](x), expected)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_mlp_is_its_formula(activation):
    mlp, x = Mlp(6, 10, activation=activation), torch.randn(2, 3, 6)
    hidden = ACTIVATIONS[activation](x @ mlp.fc1.weight.T + mlp.fc1.bias)
    assert_close(mlp(x), hidden @ mlp.fc2.weight.T + mlp.fc2.bias)


def test_swiglu_is_its_formula_with_the_gate_first():
    mlp, x = SwiGLU(6, 10), torch.randn(2, 3, 6)
    (w, v), (b, c) = mlp.fc1.weight.split(10), mlp.fc1.bias.split(10)
    gate = x @ w.T + b
    expected = (gate * gate.sigmoid() * (x @ v.T + c)) @ mlp.fc2.weight.T + mlp.fc2.bias
    assert_close(mlp(x), expected)


@pytest.mark.parametrize("mlp", [Mlp(6, 10, dropout=0.5), SwiGLU(6, 10, dropout=0.5)])
def test_a_token_is_alone_in_an_mlp(mlp):
    x = torch.randn(2, 5, 6)
    mlp.eval()
    assert_close(mlp(x)[:, 3:4], mlp(x[:, 3:4]))
    assert_close(mlp(x.flip(1)), mlp(x).flip(1))


@pytest.mark.parametrize("kind", [Mlp, SwiGLU])
def test_dropout_of_an_mlp_is_off_in_evaluation(kind):
    """ATT-08."""
    noisy, quiet, x = kind(6, 10, dropout=0.5), kind(6, 10), torch.randn(2, 5, 6)
    quiet.load_state_dict(noisy.state_dict())
    assert not torch.equal(noisy(x), quiet(x))
    assert torch.equal(noisy.eval()(x), quiet(x))


def test_a_hidden_number_is_dropped_before_the_way_out():
    """With the way out an identity, half of what comes out is zero twice over, three quarters."""
    mlp = Mlp(64, 64, dropout=0.5)
    for layer in (mlp.fc1, mlp.fc2):
        layer.weight.data, layer.bias.data = torch.eye(64), torch.zeros(64)
    x = torch.ones(64, 16, 64)
    result = mlp(x)
    assert_close(result.eq(0).float().mean(), torch.tensor(0.75), atol=0.02, rtol=0)
    assert_close(result[result != 0], (F.gelu(x) * 4)[result != 0])
