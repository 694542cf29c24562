"""When do positions matter?

    vitreous study layout

Beside the ten digits another question about the same strokes: the four quarters of each image are
put in one of four orders, and the order is to be told. As a set of patches the orders are equal.
Each with a linear stem and with a convolution stem, whose overlapping kernels see across borders
and the image's own edge. On the first 6,000 digits. About 20 minutes on two idle cores.
"""

from dataclasses import replace

import vitreous

CONVOLUTION = {"stem": "convolution", "patch_size": 8}
QUARTERS = {"task": "quarters", "classes": 4}
NONE = {"positions": "none"}

STUDY = vitreous.Study(
    name="layout",
    question="When do positions matter, and what does a convolution stem make of that?",
    base=vitreous.preset("digits-small"),
    base_name="digits",
    arms={
        "digits, no positions": NONE,
        "digits, convolution": CONVOLUTION,
        "digits, convolution, no positions": CONVOLUTION | NONE,
        "quarters": QUARTERS,
        "quarters, no positions": QUARTERS | NONE,
        "quarters, convolution": QUARTERS | CONVOLUTION,
        "quarters, convolution, no positions": QUARTERS | CONVOLUTION | NONE,
    },
    against={
        "digits, convolution, no positions": "digits, convolution",
        "quarters, no positions": "quarters",
        "quarters, convolution, no positions": "quarters, convolution",
    },
    seeds=tuple(range(8)),
    recipe=replace(vitreous.recipe("published"), learning_rate=1e-3, epochs=10, patience=None),
    material=vitreous.Material(train_images=6_000),
)
