"""What do more pixels cost, and what do they bring?

    vitreous study image-size

The same digits, stretched; patches stay 7 × 7, so that twice the side is four times the tokens. On
the first 6,000 digits. About 12 minutes on two idle cores.
"""

from dataclasses import replace

import vitreous

SIDES = (14, 28, 42, 56)

STUDY = vitreous.Study(
    name="image-size",
    question="What does the size of an image cost in training time, and bring in accuracy?",
    base=vitreous.preset("digits-small"),
    base_name="28 pixels",
    arms={f"{side} pixels": {"image_size": side} for side in SIDES if side != 28},
    seeds=tuple(range(7)),
    recipe=replace(vitreous.recipe("published"), learning_rate=1e-3, epochs=10, patience=None),
    material=vitreous.Material(train_images=6_000),
    along="pixels of the side",
    series={"patches of 7 × 7": {f"{side} pixels": float(side) for side in SIDES}},
    note="MNIST has 28 × 28 pixels: those above hold no detail that was not there, only tokens.",
)
