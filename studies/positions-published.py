"""The published table itself: positions on and off, under the published recipe.

    vitreous study positions-published

Published: 0.8742 without and 0.9828 with, the mean of three seeds. About nine hours on two idle
cores; it has not been run for the results that are here.
"""

import vitreous

STUDY = vitreous.Study(
    name="positions-published",
    question="Does the published table hold: 0.8742 without positions, 0.9828 with?",
    base=vitreous.preset("digits"),
    base_name="learned",
    arms={"none": {"positions": "none"}},
    seeds=(0, 1, 2),
    recipe="published",
    note="Three seeds, as published. An epoch takes minutes on a CPU.",
)
