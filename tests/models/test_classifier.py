import inspect
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from jaxtyping import TypeCheckError
from torch import nn
from torch.testing import assert_close

import vitreous.models
import vitreous.nn
from tests.models.drawn import configs
from vitreous import (
    ConfigError,
    ShapeError,
    ViTConfig,
    build,
    count_parameters,
    patchify,
    preset,
    unpatchify,
)
from vitreous.models.classifier import Classifier

SMALL = ViTConfig(image_size=8, patch_size=2, width=16, depth=2, heads=2)
MEAN = replace(SMALL, class_token=False, pooling="mean")
POSITIONS = ["learned", "learned_axes", "sincos", "sincos_1d", "rotary"]


def read_by_encoder(model: Classifier, images: torch.Tensor) -> torch.Tensor:
    """The tokens that go into the encoder."""
    seen = []
    handle = model.encoder.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model(images)
    handle.remove()
    return seen[0]


def shuffled(images: torch.Tensor, config: ViTConfig) -> torch.Tensor:
    """The images with their patches in another order."""
    patches = patchify(images, config.patch_size)
    return unpatchify(patches[:, torch.randperm(patches.shape[1])], config.patch_size, config.grid)


# the whole model, computed a second time


def torchs_own(model: Classifier) -> nn.TransformerEncoder:
    """The encoder as torch ships it, with our weights."""
    config = model.config
    layer = nn.TransformerEncoderLayer(
        config.width,
        config.heads,
        config.mlp_width,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=config.norm_eps,
        batch_first=True,
        norm_first=config.norm == "pre",
    )
    norm = nn.LayerNorm(config.width, config.norm_eps) if config.final_norm else None
    theirs = nn.TransformerEncoder(layer, config.depth, norm, enable_nested_tensor=False)
    names = {
        "attn.qkv.": "self_attn.in_proj_",
        "attn.proj.": "self_attn.out_proj.",
        "mlp.fc1.": "linear1.",
        "mlp.fc2.": "linear2.",
        "blocks.": "layers.",
    }
    weights = {}
    for name, weight in model.encoder.state_dict().items():
        for ours, other in names.items():
            name = name.replace(ours, other)
        weights[name] = weight
    theirs.load_state_dict(weights)
    return theirs


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_classifier_is_a_convolution_and_torchs_encoder(norm):
    model = build(replace(preset("digits"), norm=norm, final_norm=norm == "pre", depth=2)).eval()
    nn.init.normal_(model.patch_embed.proj.bias)
    images = torch.randn(3, 1, 28, 28)
    kernel = model.patch_embed.proj.weight.reshape(128, 1, 4, 4)
    tokens = F.conv2d(images, kernel, model.patch_embed.proj.bias, stride=4).flatten(2).mT
    tokens = torch.cat([model.cls_token.expand(3, 1, 128), tokens], dim=1)
    features = torchs_own(model)(tokens + model.pos_embed.table)[:, 0]
    assert_close(model.encode(images), features, atol=1e-5, rtol=1e-4)
    logits = features @ model.head.weight.T + model.head.bias
    assert_close(model(images), logits, atol=1e-5, rtol=1e-4)


def test_tokens_stand_in_the_published_order():
    """CKP-06: class token with its row, registers without one, then the patches with theirs."""
    config = replace(SMALL, image_size=224, patch_size=14, register_tokens=4, heads=1, depth=1)
    model = build(config)
    with torch.no_grad():
        model.cls_token.zero_()
        model.reg_token.fill_(7.0)
        model.pos_embed.table.copy_(torch.arange(257.0)[:, None].expand(257, 16))
        model.patch_embed.proj.weight.zero_()
        tokens = read_by_encoder(model, torch.randn(1, 1, 224, 224))[0]
    assert tokens.shape == (261, 16)
    assert tokens[:, 0].tolist() == [0, *[7] * 4, *range(1, 257)]
    assert torch.equal(tokens, tokens[:, :1].expand(261, 16))


@pytest.mark.parametrize("positions", ["none", *POSITIONS])
def test_a_patch_is_embedded_wherever_it_stands(positions):
    """Positions are added to embedded patches, or turn queries and keys, and do nothing else."""
    model = build(replace(SMALL, positions=positions))
    images = torch.randn(2, 1, 8, 8)
    placed = model.pos_embed((4, 4), like=torch.zeros(()))
    added = torch.zeros(17, 16) if placed.added is None else placed.added
    bare = torch.cat([model.cls_token.expand(2, 1, 16), model.patch_embed(images)], dim=1)
    assert_close(read_by_encoder(model, images), bare + added)


# order


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("pooling", ["mean", "attention", "cls"])
def test_without_positions_a_classifier_sees_a_bag_of_patches(pooling, norm):
    config = replace(SMALL, positions="none", pooling=pooling, norm=norm, register_tokens=1)
    model, images = build(config).eval(), torch.randn(2, 1, 8, 8)
    assert_close(model(shuffled(images, config)), model(images), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("positions", POSITIONS)
def test_with_positions_the_order_matters(positions):
    config = replace(MEAN, positions=positions)
    model, images = build(config).eval(), torch.randn(2, 1, 8, 8)
    assert not torch.allclose(model(shuffled(images, config)), model(images), atol=1e-4)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "attention"])
def test_features_are_the_pooled_final_tokens(pooling, positions):
    """Whatever the model leaves uncomputed because its pooling would not look."""
    model = build(replace(SMALL, pooling=pooling, positions=positions, register_tokens=2))
    images = torch.randn(2, 1, 8, 8)
    tokens = model.tokens(images)
    pooled = {
        "cls": lambda: tokens[:, 0],
        "mean": lambda: tokens[:, 3:].mean(dim=1),
        "attention": lambda: model.pool(tokens),
    }
    assert tokens.shape == (2, 19, 16)
    assert_close(model.encode(images), pooled[pooling]())
    assert_close(model(images), model.head(pooled[pooling]()))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "attention"])
def test_in_eval_mode_whoever_looks_at_the_last_block_sees_every_token(pooling, norm):
    """Training makes only what is pooled; both modes say the same."""
    model = build(replace(SMALL, pooling=pooling, norm=norm, register_tokens=2))
    images, made = torch.randn(2, 1, 8, 8), []
    model.encoder.blocks[-1].register_forward_hook(lambda *seen: made.append(seen[-1].shape[1]))
    trained, answered = model.train()(images), model.eval()(images)
    assert made == [1 if pooling == "cls" else 19, 19]
    assert_close(trained, answered)


# other sizes


@pytest.mark.parametrize("size", [(20, 36), (56, 28), (28, 4)])
@pytest.mark.parametrize("resize", ["bicubic_antialias", "bilinear_corners"])
def test_an_image_of_another_size_is_read_with_a_stretched_table(size, resize):
    """The model of that size, whose table is an independent resize of ours, says the same."""
    config = replace(preset("digits-small"), patch_size=4, position_resize=resize)
    native, images = build(config).eval(), torch.randn(2, 1, *size)
    other = build(replace(config, image_size=size)).eval()
    grid = other.config.grid
    weights = native.state_dict() | {"pos_embed.grid": torch.tensor(grid)}
    first, picture = weights["pos_embed.table"].split([1, 49])
    sideways = picture.view(7, 7, -1).permute(2, 1, 0)[None]  # columns first: width is the size
    mode, _, variant = resize.partition("_")
    stretched = F.interpolate(
        sideways,
        (grid[1], grid[0]),
        mode=mode,
        antialias=variant == "antialias",
        align_corners=variant == "corners",
    )
    weights["pos_embed.table"] = torch.cat([first, stretched[0].permute(2, 1, 0).flatten(0, 1)])
    other.load_state_dict(weights)
    assert_close(native(images), other(images), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("positions", ["none", "sincos", "sincos_1d", "rotary"])
@pytest.mark.parametrize("stem", ["linear", "convolution"])
def test_models_without_a_table_are_those_of_the_other_size(positions, stem):
    native = build(replace(MEAN, positions=positions, stem=stem)).eval()
    images = torch.randn(2, 1, 6, 12)
    other = build(replace(native.config, image_size=(6, 12))).eval()
    other.load_state_dict(native.state_dict())
    assert torch.equal(native(images), other(images))


def test_images_that_do_not_fit_are_refused_with_the_shape_that_would():
    """A missing axis meets the type checker first here; the plain package has a sentence for it."""
    model = build(SMALL)
    with pytest.raises(ShapeError, match=r"shape \(b, 1, 8, 8\).* got \(2, 3, 8, 8\)"):
        model(torch.zeros(2, 3, 8, 8))
    with pytest.raises(ShapeError, match="1 of 9 pixels are left over"):
        model(torch.zeros(2, 1, 9, 8))
    with pytest.raises(TypeCheckError):
        model(torch.zeros(1, 8, 8))
    with pytest.raises(ShapeError, match=r"got \(1, 8, 8\)"):
        inspect.unwrap(Classifier.check)(model, torch.zeros(1, 8, 8))


# training and evaluation


@given(config=configs())
@settings(deadline=None, max_examples=25)
def test_a_row_of_a_batch_is_the_image_alone(config):
    model = build(config).eval()
    images = torch.randn(5, config.channels, *config.image_shape)
    whole = model(images)
    assert whole.isfinite().all()
    assert torch.equal(whole, model(images))
    for i in range(5):
        assert_close(model(images[i : i + 1])[0], whole[i], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_nothing_is_dropped_in_evaluation(activation):
    """ATT-08: attention, MLP, tokens and whole branches."""
    quiet = build(replace(SMALL, activation=activation)).eval()
    images = torch.randn(4, 1, 8, 8)
    for name in ("dropout", "attention_dropout", "drop_path"):
        noisy = build(replace(quiet.config, **{name: 0.5}))
        noisy.load_state_dict(quiet.state_dict())
        assert not torch.equal(noisy(images), noisy(images)), name
        assert torch.equal(noisy.eval()(images), noisy(images))
        assert torch.equal(noisy(images), quiet(images)), name


def test_drop_path_grows_evenly_to_its_full_rate():
    model = build(replace(SMALL, depth=5, drop_path=0.4))
    rates = [block.drop_path.rate for block in model.encoder.blocks]
    assert_close(rates, [0.0, 0.1, 0.2, 0.3, 0.4])


@given(config=configs())
@settings(deadline=None, max_examples=25)
def test_every_parameter_gets_a_gradient(config):
    """But for a query that has one token to read: it reads that one, whatever it asks."""
    # A scale of zero would stop what lies behind it.
    scale = None if config.layer_scale is None else 1.0
    quiet = replace(config, dropout=0.0, attention_dropout=0.0, drop_path=0.0, layer_scale=scale)
    model = build(replace(quiet, classes=3, projection=0))
    images = torch.randn(3, config.channels, *config.image_shape)
    (model(images) * torch.randn(3, 3)).sum().backward()
    idle = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    read = config.tokens - (config.pooling == "map") * config.prefix_tokens
    assert idle <= ({"pool.query"} if read == 1 else set())
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", ["digits", "digits-small", "digits-fast"])
def test_no_weight_of_a_preset_stands_idle(name):
    model = build(preset(name))
    model(torch.randn(4, 1, 28, 28)).square().sum().backward()
    idle = [name for name, p in model.named_parameters() if not p.grad.any()]
    assert not idle


@pytest.mark.parametrize("change", [{"pooling": "attention"}, {"positions": "learned_axes"}, {}])
def test_registers_and_scales_and_tables_learn(change):
    config = replace(SMALL, register_tokens=2, layer_scale=1e-2, activation="swiglu", **change)
    model = build(config)
    model(torch.randn(4, 1, 8, 8)).square().sum().backward()
    assert not [name for name, p in model.named_parameters() if not p.grad.any()]


def test_training_in_bfloat16_is_training_in_float32_but_for_rounding():
    model, images = build(SMALL), torch.randn(4, 1, 8, 8)
    precise = model(images)
    model.bfloat16()
    rough = model(images.bfloat16())
    rough.sum().backward()
    assert rough.dtype == torch.bfloat16
    assert_close(rough.float(), precise, atol=0.05, rtol=0.05)


def test_the_same_seed_makes_the_same_model():
    models = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        models.append(build(SMALL).head.weight)
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])


# settings reach their place


def test_settings_of_the_config_reach_the_layers():
    config = replace(SMALL, norm_eps=1e-3, layer_scale=0.25, qkv_bias=False, activation="gelu_tanh")
    block = build(config).encoder.blocks[1]
    assert block.norm1.eps == block.norm2.eps == 1e-3
    assert torch.equal(block.ls2.gamma, torch.full((16,), 0.25))
    assert block.attn.qkv.bias is None
    assert_close(block.mlp.activation(torch.tensor(1.0)), torch.tensor(0.841192))


def test_a_fresh_model_prefers_no_class():
    model = build(preset("digits"))
    probabilities = model(torch.randn(64, 1, 28, 28)).softmax(-1).mean(0)
    assert probabilities.min() > 0.01


def constructors():
    for package in (vitreous.nn, vitreous.models):
        for info in iter_modules(package.__path__, package.__name__ + "."):
            for _, thing in inspect.getmembers(import_module(info.name), inspect.isclass):
                if thing.__module__ == info.name and issubclass(thing, nn.Module):
                    yield thing


@pytest.mark.parametrize("kind", list(constructors()), ids=lambda kind: kind.__name__)
def test_no_constructor_has_more_than_eight_arguments(kind):
    assert len(inspect.signature(kind).parameters) <= 8


@pytest.mark.parametrize("std", [0.02, 1.0])
@pytest.mark.parametrize("kind", ["learned", "learned_axes"])
def test_positions_and_prefix_tokens_start_with_the_configs_deviation(kind: str, std: float):
    config = replace(preset("digits"), depth=1, register_tokens=7, positions=kind, token_std=std)
    model = build(config)
    assert model.cls_token is not None
    assert model.reg_token is not None
    for tensor in (model.cls_token, model.reg_token, *model.pos_embed.parameters()):
        assert tensor.std().item() == pytest.approx(std, rel=0.2)


def test_a_convolution_stem_without_blocks_is_a_small_convolutional_network():
    config = ViTConfig(
        stem="convolution",
        patch_size=8,
        width=16,
        heads=2,
        depth=0,
        norm="post",
        final_norm=False,
        positions="none",
        class_token=False,
        pooling="mean",
    )
    model, images = build(config).eval(), torch.randn(2, 1, 28, 28)
    features = model.patch_embed(images).mean(dim=1)
    assert_close(model(images), model.head(features))
    assert count_parameters(config) == sum(p.numel() for p in model.parameters())
    with pytest.raises(ConfigError, match="depth=0 must be at least 1"):
        replace(config, stem="linear", patch_size=7)
