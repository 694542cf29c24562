"""Norms before each branch, or after each sum?

    vitreous study norm

Two blocks on the first 6,000 digits; pre-norm has a last norm, as it needs one. About 6 minutes on
two idle cores.
"""

from dataclasses import replace

import vitreous

STUDY = vitreous.Study(
    name="norm",
    question="Should norms stand before each branch or after each sum?",
    base=vitreous.preset("digits-small"),
    base_name="post",
    arms={"pre": {"norm": "pre", "final_norm": True}},
    seeds=tuple(range(8)),
    recipe=replace(vitreous.recipe("published"), learning_rate=1e-3, epochs=10, patience=None),
    material=vitreous.Material(train_images=6_000),
    note="Two blocks only: what norms do for the training of deep models is not seen here.",
)
