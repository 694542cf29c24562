"""Configs drawn at random from all that can be built small."""

from dataclasses import fields, replace

from hypothesis import strategies as st

from vitreous import ViTConfig

__all__ = ["configs", "own_configs"]

rates = st.sampled_from([0.0, 0.1, 0.5])
small = st.integers(1, 4)


@st.composite
def configs(draw: st.DrawFn) -> ViTConfig:
    """Any stem, any positions, any pooling; every size below a hundred."""
    stem = draw(st.sampled_from(["linear", "convolution"]))
    grid = draw(st.tuples(small, small))
    if stem == "linear":
        patch = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)) | st.integers(1, 6))
        py, px = patch if isinstance(patch, tuple) else (patch, patch)
        image = (grid[0] * py, grid[1] * px)
    else:
        patch = draw(st.sampled_from([2, 4, 8]))
        image = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)) | st.integers(1, 40))
    class_token = draw(st.booleans())
    distillation_token = class_token and draw(st.booleans())
    poolings = ["mean", "attention", "map", *["cls"] * class_token]
    pooling = draw(st.sampled_from([*poolings, *["distilled"] * distillation_token]))
    classes = draw(st.integers(0, 12))
    head_reads = "features"
    if pooling == "cls" and classes:
        head_reads = draw(st.sampled_from(["features", "cls_and_mean"]))
    reads_tokens = pooling == "distilled" or head_reads == "cls_and_mean"
    heads = draw(small)
    return ViTConfig(
        image_size=image,
        channels=draw(small),
        patch_size=patch,
        stem=stem,
        patch_bias=draw(st.booleans()),
        # two pixels at least: one alone, normalised, is always zero
        patch_norm=stem == "linear" and py * px > 1 and draw(st.booleans()),
        width=4 * heads * draw(small),
        depth=draw(small),
        heads=heads,
        attention_width=draw(st.sampled_from([None, 4 * heads, 12 * heads])),
        mlp_ratio=draw(st.sampled_from([0.5, 1.0, 2.7, 4.0])),
        activation=draw(st.sampled_from(["gelu", "gelu_tanh", "quick_gelu", "swiglu"])),
        qkv_bias=draw(st.booleans()),
        norm=draw(st.sampled_from(["pre", "post"])),
        norm_eps=draw(st.sampled_from([1e-5, 1e-6, 1e-12])),
        embed_norm=draw(st.booleans()),
        final_norm=draw(st.booleans()),
        positions=draw(
            st.sampled_from(
                ["none", "learned", "learned_axes", "sincos", "sincos_1d", "rotary", "rotary_unit"]
            )
        ),
        position_resize=draw(st.sampled_from(["bicubic_antialias", "bilinear", "bicubic_corners"])),
        class_token=class_token,
        distillation_token=distillation_token,
        register_tokens=draw(st.integers(0, 3)),
        pooling=pooling,
        pooled_norm=not reads_tokens and draw(st.booleans()),
        pre_logits=not reads_tokens and draw(st.booleans()),
        projection=draw(st.sampled_from([0, 5])),
        head_reads=head_reads,
        layer_scale=draw(st.sampled_from([None, 0.0, 1.0, 1e-5])),
        dropout=draw(rates),
        attention_dropout=draw(rates),
        drop_path=draw(rates),
        classes=classes,
    )


OTHERS = (
    "patch_bias",
    "patch_norm",
    "attention_width",
    "embed_norm",
    "distillation_token",
    "pooled_norm",
    "pre_logits",
    "projection",
    "head_reads",
)
"""Settings that only other libraries' models need."""


def own_configs() -> st.SearchStrategy[ViTConfig]:
    """Models as we train them: what a training step costs is planned to the byte for these only."""
    usual = {field.name: field.default for field in fields(ViTConfig)}
    plain = {name: usual[name] for name in OTHERS}
    return configs().map(
        lambda config: replace(
            config,
            **plain,
            pooling="mean" if config.pooling in ("map", "distilled") else config.pooling,
            positions="rotary" if config.positions == "rotary_unit" else config.positions,
            width=config.width if config.attention_width is None else 4 * config.heads,
            classes=max(config.classes, 1),
        )
    )
