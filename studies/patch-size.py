"""How large should a patch be, at equal depth and at equal cost?

    vitreous study patch-size

Patches of 14, 7, 4 and 2 pixels: 4, 16, 49 and 196 tokens. Arms of equal cost have depth and width
changed until they take as many multiply-adds as the base, within a tenth. On the first 6,000
digits. About 25 minutes on two idle cores.
"""

from dataclasses import replace

import vitreous

SIDES = (14, 7, 4, 2)

STUDY = vitreous.Study(
    name="patch-size",
    question="How large should a patch be, at equal depth and at equal cost?",
    base=vitreous.preset("digits-small"),
    base_name="7",
    arms={
        **{f"{side}": {"patch_size": side} for side in SIDES if side != 7},
        "14, equal cost": {"patch_size": 14, "depth": 7},
        "4, equal cost": {"patch_size": 4, "depth": 1, "width": 48},
        "2, equal cost": {"patch_size": 2, "depth": 1, "width": 16},
    },
    seeds=tuple(range(5)),
    recipe=replace(vitreous.recipe("published"), learning_rate=1e-3, epochs=10, patience=None),
    material=vitreous.Material(train_images=6_000),
    along="pixels of a patch's side",
    series={
        "equal depth": {f"{side}": float(side) for side in SIDES},
        "equal cost": {"7": 7.0} | {f"{side}, equal cost": float(side) for side in (14, 4, 2)},
    },
    note="Exploratory: five seeds.",
)
