"""Written files are the source library's own, tensor by tensor, or load to the same outputs."""

import json
from dataclasses import replace

import pytest
import safetensors.torch
import torch
from torch.testing import assert_close

from tests.interop.golden_weights import CASES, ROOT
from vitreous import CheckpointError, ViTConfig, build, load_weights
from vitreous.interop.write import WRITERS, write_weights

OF_ITS_OWN = {"architecture", "model_args", "pretrained_cfg", "mlp_ratio"}
SMALL = ViTConfig(image_size=8, channels=3, width=16, depth=2, heads=2, classes=3)
OWN = {
    "timm": ["timm_vit_cls"],
    "hugging-face": [
        "hf_vit_classifier",
        "hf_dinov2",
        "hf_dinov2_registers",
        "hf_dinov2_classifier_swiglu",
    ],
    "torchvision": ["torchvision_vit"],
}


@pytest.mark.parametrize(
    ("library", "name"), [(library, name) for library, names in OWN.items() for name in names]
)
def test_a_librarys_own_file_is_written_as_it_was_read(tmp_path, library, name):
    case = next(case for case in CASES if case.name == name)
    model, _ = load_weights(case.path, case.heads)
    write_weights(model, tmp_path, library)
    written = safetensors.torch.load_file(tmp_path / "model.safetensors")
    path = case.path if case.path.is_file() else case.path / "model.safetensors"
    if path.suffix == ".pth":
        original = torch.load(path, weights_only=True)
    else:
        original = safetensors.torch.load_file(path)
    assert written.keys() == original.keys()
    for key, tensor in original.items():
        # what training alone uses is not kept
        assert torch.equal(written[key], tensor) or "mask_token" in key, key
    config = json.loads((tmp_path / "config.json").read_text())
    beside = case.folder / "config.json"
    if beside.exists():
        theirs = json.loads(beside.read_text())
        shared = config.keys() & theirs.keys() - OF_ITS_OWN
        assert {key: config[key] for key in shared} == {key: theirs[key] for key in shared}
        arguments = theirs.get("model_args", {})
        assert {key: config["model_args"][key] for key in arguments} == arguments


@pytest.mark.parametrize("library", WRITERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}/{case.file}")
def test_a_written_file_loads_to_the_same_outputs_or_is_refused_with_the_setting(
    tmp_path, library, case
):
    model, _ = load_weights(case.path, case.heads)
    try:
        notes = write_weights(model, tmp_path, library)
    except CheckpointError:
        assert not list(tmp_path.iterdir())
        return
    heads = case.meta["arch"]["heads"]
    again, _ = load_weights(tmp_path, heads=heads)
    images = case.outputs()["x"]
    same_eps = again.config.norm_eps == model.config.norm_eps
    assert same_eps or any("eps" in note for note in notes)
    again_model = again if same_eps else with_eps(again, model.config.norm_eps)
    with torch.no_grad():
        assert_close(again_model(images), model(images), atol=2e-6, rtol=2e-5)


def with_eps(model, eps):
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = eps
    return model


@pytest.mark.parametrize(
    ("change", "library", "sentence"),
    [
        ({"norm": "post"}, "timm", "norm='post'"),
        ({"positions": "rotary"}, "timm", "positions='rotary'"),
        ({"stem": "convolution"}, "hugging-face", "stem='convolution'"),
        ({"activation": "swiglu"}, "timm", "activation='swiglu'"),
        ({"pooling": "mean"}, "hugging-face", "pooling='mean'"),
        ({"register_tokens": 2}, "torchvision", "register_tokens=2"),
        ({"classes": 0}, "torchvision", "no model without a head"),
        ({"channels": 1}, "torchvision", "three channels"),
        ({"image_size": (8, 16)}, "hugging-face", "squares"),
        ({"layer_scale": 1.0}, "torchvision", "layer_scale=1.0"),
        ({"layer_scale": 1.0}, "hugging-face", "class token and mean patch"),
    ],
)
def test_what_a_library_cannot_build_is_refused(tmp_path, change, library, sentence):
    with pytest.raises(CheckpointError, match=sentence):
        write_weights(build(replace(SMALL, **change)), tmp_path, library)
    assert not list(tmp_path.iterdir())


def test_timms_options_come_back_from_its_file(tmp_path):
    for change in (
        {"register_tokens": 3, "layer_scale": 1.0},
        {"pooling": "mean", "final_norm": False, "pooled_norm": True},
        {"pooling": "mean", "class_token": False},
        {"pooling": "map", "class_token": False, "classes": 0},
        {"distillation_token": True, "pooling": "distilled"},
        {"image_size": (8, 16), "patch_size": (4, 2)},
    ):
        config = replace(SMALL, **change)
        model = build(config).eval()
        write_weights(model, tmp_path, "timm")
        again, _ = load_weights(tmp_path)
        assert replace(
            again.config, image_size=config.image_size, patch_size=config.patch_size
        ) == (config), change
        images = torch.randn(2, 3, *config.image_shape)
        assert_close(again(images), model(images), atol=1e-6, rtol=1e-5)


def test_a_deit_with_two_heads_becomes_hugging_faces(tmp_path):
    model, _ = load_weights(ROOT / "timm_deit_distilled")
    write_weights(model, tmp_path, "hugging-face")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["DeiTForImageClassificationWithTeacher"]
    again, _ = load_weights(tmp_path)
    assert again.config.pooling == "distilled"
