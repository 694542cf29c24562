"""Configs drawn at random from all that can be built small."""

from hypothesis import strategies as st

from vitreous import ViTConfig

__all__ = ["configs"]

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
    heads = draw(small)
    return ViTConfig(
        image_size=image,
        channels=draw(small),
        patch_size=patch,
        stem=stem,
        width=4 * heads * draw(small),
        depth=draw(small),
        heads=heads,
        mlp_ratio=draw(st.sampled_from([0.5, 1.0, 2.7, 4.0])),
        activation=draw(st.sampled_from(["gelu", "gelu_tanh", "quick_gelu", "swiglu"])),
        qkv_bias=draw(st.booleans()),
        norm=draw(st.sampled_from(["pre", "post"])),
        norm_eps=draw(st.sampled_from([1e-5, 1e-6, 1e-12])),
        final_norm=draw(st.booleans()),
        positions=draw(
            st.sampled_from(["none", "learned", "learned_axes", "sincos", "sincos_1d", "rotary"])
        ),
        position_resize=draw(st.sampled_from(["bicubic_antialias", "bilinear", "bicubic_corners"])),
        class_token=class_token,
        register_tokens=draw(st.integers(0, 3)),
        pooling=draw(st.sampled_from(["mean", "attention", *["cls"] * class_token])),
        layer_scale=draw(st.sampled_from([None, 0.0, 1.0, 1e-5])),
        dropout=draw(rates),
        attention_dropout=draw(rates),
        drop_path=draw(rates),
        classes=draw(st.integers(1, 12)),
    )
