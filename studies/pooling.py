"""How should many tokens become one vector?

    vitreous study pooling

A class token, the mean of the patches, or attention with one learned query; on the first 6,000
digits. About 8 minutes on two idle cores.
"""

from dataclasses import replace

import vitreous

STUDY = vitreous.Study(
    name="pooling",
    question="Class token, mean of the patches, or attention: how should tokens become a vector?",
    base=vitreous.preset("digits-small"),
    base_name="class token",
    arms={
        "mean": {"pooling": "mean", "class_token": False},
        "attention": {"pooling": "attention", "class_token": False},
    },
    seeds=tuple(range(8)),
    recipe=replace(vitreous.recipe("published"), learning_rate=1e-3, epochs=10, patience=None),
    material=vitreous.Material(train_images=6_000),
    note="Some cells stood still for other work while these results were made: times say nothing.",
)
