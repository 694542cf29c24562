"""How much does a transformer lack convolutions when there are few images?

    vitreous study data-size

The small transformer beside a convolutional network of as many parameters (three 3 × 3
convolutions of stride 2, the mean over places, a linear map), on more and more digits, each for
3,000 steps of 64 images. A fifth of the digits is held out. About 25 minutes on two idle cores.
"""

import vitreous

SIZES = (500, 2_000, 8_000, 30_000, 60_000)
CONVOLUTIONAL = {
    "stem": "convolution",
    "patch_size": 8,
    "width": 124,
    "depth": 0,
    "positions": "none",
    "class_token": False,
    "pooling": "mean",
}

STUDY = vitreous.Study(
    name="data-size",
    question="How many digits does a transformer need to do as well as a convolutional network?",
    base=vitreous.preset("digits-small"),
    base_name="transformer, 60000",
    arms={
        **{f"transformer, {size}": {"train_images": size} for size in SIZES[:-1]},
        **{f"convolutions, {size}": {**CONVOLUTIONAL, "train_images": size} for size in SIZES},
    },
    against={f"convolutions, {size}": f"transformer, {size}" for size in SIZES},
    seeds=tuple(range(5)),
    recipe=vitreous.Recipe(
        optimizer="adamw",
        batch_size=64,
        epochs=500,
        max_steps=3_000,
        precision="float32",
    ),
    material=vitreous.Material(train_images=60_000),
    along="digits, a fifth of them held out",
    series={
        name: {f"{name}, {size}": float(size) for size in SIZES}
        for name in ("transformer", "convolutions")
    },
    note="Exploratory: five seeds. No augmentation; equal steps, not equal epochs.",
)
