"""From an image to a model's tensor: one way, for training, prediction and serving."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Real
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vitreous import settings
from vitreous.errors import ConfigError
from vitreous.frontends.decode import Decoded, Source, decode
from vitreous.frontends.digit import prepare_digit

__all__ = ["MNIST_INPUT", "ImageInput", "fit_image", "normalise", "read_image"]


@dataclass(frozen=True, kw_only=True)
class ImageInput:
    """How images are made to fit a model; saved with its weights. Raises ConfigError."""

    size: tuple[int, int]
    """Pixel rows and columns."""
    channels: int
    """1 for grey, 3 for colour."""
    kind: Literal["digit", "picture"]
    """A digit is found and centred as MNIST's are; a picture is resized whole."""
    resize: Literal["stretch", "crop", "pad"]
    """How a picture of another shape fits: distorted, its middle only, or on a ground of `mean`."""
    mean: tuple[float, ...]
    """Per channel, of pixels as 0..1."""
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        settings.check(self)
        if min(self.size) < 1:
            raise ConfigError(f"size={self.size} must be at least 1 × 1")
        if self.channels not in (1, 3):
            raise ConfigError(f"channels={self.channels} must be 1 (grey) or 3 (colour)")
        if self.kind == "digit" and self.channels != 1:
            raise ConfigError("kind='digit' needs channels=1: a digit is prepared in grey")
        for name in ("mean", "std"):
            if len(getattr(self, name)) != self.channels:
                raise ConfigError(f"{name}={getattr(self, name)} needs {self.channels} numbers")
        if min(self.std) <= 0:
            raise ConfigError(f"std={self.std} must be greater than zero")


MNIST_INPUT = ImageInput(
    size=(28, 28), channels=1, kind="digit", resize="pad", mean=(0.1307,), std=(0.3081,)
)
"""Mean and deviation of all pixels of MNIST's 60,000 training images, as is usual."""


def read_image(source: Source, image_input: ImageInput) -> Float[Tensor, "1 c y x"]:
    """A file, bytes or a Pillow image as the batch of one that a model takes. Raises ImageError."""
    fitted = fit_image(decode(source), image_input)
    return normalise(torch.from_numpy(fitted)[None], image_input)


def normalise(images: Real[Tensor, "b c y x"], image_input: ImageInput) -> Float[Tensor, "b c y x"]:
    """Pixels 0..255 as float32 of mean 0 and deviation 1 over the training images."""
    mean = torch.tensor(image_input.mean, device=images.device).view(-1, 1, 1)
    std = torch.tensor(image_input.std, device=images.device).view(-1, 1, 1)
    return (images.float() / 255 - mean) / std


def fit_image(decoded: Decoded, image_input: ImageInput) -> NDArray[np.uint8]:
    """Decoded pixels (y, x) or (y, x, 3) as uint8 (c, y, x) of the input's size and channels.

    Resizing is bilinear with antialiasing. An image that fits is not changed. Raises ImageError
    where kind is "digit" and there is none.
    """
    if image_input.kind == "digit":
        image = stretched(Image.fromarray(prepare_digit(decoded)), image_input)
    else:
        mode = "L" if image_input.channels == 1 else "RGB"
        image = RESIZES[image_input.resize](Image.fromarray(decoded).convert(mode), image_input)
    pixels = np.array(image)
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def stretched(image: Image.Image, image_input: ImageInput) -> Image.Image:
    """The whole image, its shape distorted where it differs."""
    y, x = image_input.size
    return image.resize((x, y), Image.Resampling.BILINEAR)


def cropped(image: Image.Image, image_input: ImageInput) -> Image.Image:
    """The largest middle part that has the wanted shape."""
    y, x = image_input.size
    scale = min(image.height / y, image.width / x)
    left, top = (image.width - x * scale) / 2, (image.height - y * scale) / 2
    box = (left, top, left + x * scale, top + y * scale)
    return image.resize((x, y), Image.Resampling.BILINEAR, box=box)


def padded(image: Image.Image, image_input: ImageInput) -> Image.Image:
    """The whole image, undistorted, in the middle of a ground of the mean colour."""
    y, x = image_input.size
    scale = min(y / image.height, x / image.width)
    width, height = (max(1, round(side * scale)) for side in image.size)
    levels = [round(255 * level) for level in image_input.mean]
    whole = Image.merge(image.mode, [Image.new("L", (x, y), level) for level in levels])
    small = image.resize((width, height), Image.Resampling.BILINEAR)
    whole.paste(small, ((x - width) // 2, (y - height) // 2))
    return whole


RESIZES = {"stretch": stretched, "crop": cropped, "pad": padded}
