"""Training, prediction and serving see one tensor for one image."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

import vitreous
from vitreous.data.sources import load_source
from vitreous.errors import ConfigError
from vitreous.frontends.image import MNIST_INPUT, ImageInput, fit_image, normalise, read_image

RNG = np.random.default_rng(0)
RULES = ["stretch", "crop", "pad"]
PICTURE = ImageInput(
    size=(12, 20),
    channels=3,
    kind="picture",
    resize="stretch",
    mean=(0.2, 0.4, 0.8),
    std=(0.1, 0.2, 0.3),
)


def picture(y: int, x: int) -> np.ndarray:
    """A colour picture that is smooth, so that it survives resizing."""
    coarse = RNG.integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((x, y), Image.Resampling.BICUBIC))


def test_pixels_are_divided_by_255_once():
    """PHO-11: 255 divided twice would give -0.411485."""
    pixels = torch.tensor([0, 255], dtype=torch.uint8).view(1, 1, 1, 2)
    got = normalise(pixels, MNIST_INPUT).flatten().tolist()
    assert got == pytest.approx([-0.424213, 2.821487], abs=1e-6)


def test_each_channel_has_its_own_mean_and_deviation():
    pixels = torch.from_numpy(RNG.integers(0, 256, (4, 3, 12, 20), dtype=np.uint8))
    got = normalise(pixels, PICTURE)
    for channel, (mean, std) in enumerate(zip(PICTURE.mean, PICTURE.std, strict=True)):
        wanted = (pixels[:, channel].double() / 255 - mean) / std
        torch.testing.assert_close(got[:, channel].double(), wanted, rtol=0, atol=1e-5)


def test_serving_prepares_an_image_as_training_does(tmp_path: Path):
    """PHO-11."""
    mnist = load_source("mnist")
    trained = normalise(torch.from_numpy(mnist.test_images[:20]), mnist.input)
    for index, image in enumerate(mnist.test_images[:20, 0]):
        file = tmp_path / f"{index}.png"
        Image.fromarray(image).save(file)
        served = read_image(file, mnist.input)
        torch.testing.assert_close(served, trained[index : index + 1], rtol=0, atol=0)


def test_an_image_folder_is_served_as_it_was_trained(tmp_path: Path):
    """PHO-11."""
    for index in range(10):
        file = tmp_path / "ab"[index % 2] / f"{index}.png"
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(picture(30 + index, 40)).save(file)
    dataset = load_source(tmp_path, image_size=(16, 24))
    trained = {normalise(torch.from_numpy(i[None]), dataset.input) for i in dataset.train_images}
    served = [read_image(file, dataset.input) for file in sorted(tmp_path.glob("*/*.png"))]
    for tensor in trained:
        assert any(torch.equal(tensor, one) for one in served)


def test_how_images_are_prepared_is_saved_with_the_weights(tmp_path: Path):
    """PHO-11."""
    model = vitreous.build(vitreous.ViTConfig(image_size=8, width=8, depth=1, heads=2))
    model.image_input = replace(PICTURE, resize="pad")
    vitreous.save(model, tmp_path)
    assert vitreous.load(tmp_path).image_input == replace(PICTURE, resize="pad")


@pytest.mark.parametrize("rule", RULES)
def test_an_image_that_fits_is_not_changed(rule: str):
    image = RNG.integers(0, 256, (12, 20, 3), dtype=np.uint8)
    fitted = fit_image(image, replace(PICTURE, resize=rule))
    np.testing.assert_array_equal(fitted.transpose(1, 2, 0), image)


@pytest.mark.parametrize("shape", [(60, 100), (31, 22), (5, 7)])
def test_stretching_agrees_with_another_implementation(shape: tuple[int, int]):
    image = picture(*shape)
    levels = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float()
    wanted = F.interpolate(levels, size=(12, 20), mode="bilinear", antialias=True)[0]
    got = torch.from_numpy(fit_image(image, PICTURE)).float()
    assert (got - wanted).abs().max() <= 1


def test_a_fine_pattern_becomes_grey_and_not_stripes():
    stripes = np.tile(np.array([0, 255], np.uint8), (120, 100))
    fitted = fit_image(stripes, replace(PICTURE, channels=3))
    assert np.abs(fitted - 127.5).max() <= 4


@pytest.mark.parametrize("shape", [(24, 60), (48, 40)])
def test_cropping_keeps_the_middle_and_the_proportions(shape: tuple[int, int]):
    y, x = shape
    image = picture(y, x)
    middle = image[:, 10:50] if shape == (24, 60) else image[12:36]
    cropped = fit_image(image, replace(PICTURE, resize="crop"))
    alone = fit_image(np.ascontiguousarray(middle), PICTURE)
    inner = slice(1, -1)  # the outermost pixels are also lit by what lies beyond the cut
    np.testing.assert_array_equal(cropped[:, inner, inner], alone[:, inner, inner])


@pytest.mark.parametrize("shape", [(12, 60), (48, 20)])
def test_padding_keeps_the_whole_on_a_ground_of_the_mean(shape: tuple[int, int]):
    image = np.full((*shape, 3), 255, np.uint8)
    padded = fit_image(image, replace(PICTURE, resize="pad"))
    inside = np.zeros((12, 20), bool)
    inside[slice(4, 8) if shape == (12, 60) else slice(None)] = True
    if shape == (48, 20):
        inside[:, [*range(7), *range(12, 20)]] = False
    assert (padded[:, inside] == 255).all()
    assert (padded[:, ~inside] == np.array([[51], [102], [204]])).all()


def test_padding_a_grey_picture_uses_the_mean_grey():
    grey = replace(PICTURE, channels=1, mean=(0.4,), std=(1.0,), resize="pad")
    padded = fit_image(np.zeros((40, 20), np.uint8), grey)
    assert set(padded[0, :, 0]) == {102}
    assert set(padded[0, :, 10]) == {0}


def test_a_grey_picture_is_the_same_in_three_channels():
    grey = RNG.integers(0, 256, (30, 30), dtype=np.uint8)
    three = fit_image(grey, PICTURE)
    one = fit_image(grey, replace(PICTURE, channels=1, mean=(0.0,), std=(1.0,)))
    np.testing.assert_array_equal(three, np.repeat(one, 3, axis=0))


def test_channels_stay_red_green_blue():
    red = np.zeros((30, 30, 3), np.uint8)
    red[..., 0] = 255
    assert fit_image(red, PICTURE).max(axis=(1, 2)).tolist() == [255, 0, 0]


def test_a_digit_fills_another_size_too():
    digit = np.full((90, 90), 255, np.uint8)
    digit[20:70, 40:50] = 0
    small = fit_image(digit, MNIST_INPUT)
    large = fit_image(digit, replace(MNIST_INPUT, size=(56, 56)))
    again = np.asarray(Image.fromarray(large[0]).resize((28, 28), Image.Resampling.BOX))
    assert np.abs(again - np.int16(small[0])).mean() < 8
    assert large.sum() == pytest.approx(4 * int(small.sum()), rel=0.02)


def test_a_picture_of_a_digit_kind_is_prepared_and_one_of_picture_kind_is_not():
    paper = np.full((28, 28), 255, np.uint8)
    paper[4:24, 12:15] = 0
    file = io.BytesIO()
    Image.fromarray(paper).save(file, "PNG")
    as_picture = replace(MNIST_INPUT, kind="picture", mean=(0.0,), std=(1.0,))
    as_digit = replace(MNIST_INPUT, mean=(0.0,), std=(1.0,))
    assert read_image(file.getvalue(), as_picture)[0, 0, 0, 0] == 1
    assert read_image(file.getvalue(), as_digit)[0, 0, 0, 0] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": (0, 20)}, "at least 1 × 1"),
        ({"channels": 2}, "1 .grey. or 3 .colour."),
        ({"kind": "digit"}, "needs channels=1"),
        ({"mean": (0.5,)}, "mean=.*needs 3 numbers"),
        ({"std": (0.1, 0.2)}, "std=.*needs 3 numbers"),
        ({"std": (0.1, 0.0, 0.2)}, "greater than zero"),
        ({"mean": (0.5, float("nan"), 0.5)}, "mean"),
    ],
)
def test_a_preparation_that_cannot_work_is_refused(change: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        replace(PICTURE, **change)
