"""What are positions worth on all of MNIST?

    vitreous study positions-full

The published architecture under the fast recipe. Published, under its own recipe: 0.8742 without
and 0.9828 with learned positions. About two hours on two idle cores.
"""

import vitreous

STUDY = vitreous.Study(
    name="positions-full",
    question="What are positions worth to the published architecture on all of MNIST?",
    base=vitreous.preset("digits"),
    base_name="learned",
    arms={kind: {"positions": kind} for kind in ("none", "sincos", "rotary")},
    seeds=tuple(range(5)),
    recipe="fast",
    note="Exploratory: five seeds. Published, under another recipe: 0.8742 without, 0.9828 with.",
)
