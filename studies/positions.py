"""What are positions worth?

    vitreous study positions

The small published setting: the first 6,000 digits, of which a fifth is held out, cut into 16
patches of 7 × 7. Published: about 0.86 without positions and 7.5 points more with them, at a
learning rate that the text does not state; here it is 1e-3. About 20 minutes on two idle cores.
"""

import vitreous

STUDY = vitreous.Study(
    name="positions",
    question="What are positions worth, and does it matter which?",
    base=vitreous.preset("digits-small"),
    base_name="learned",
    arms={
        "none": {"positions": "none"},
        "sincos": {"positions": "sincos"},
        "rotary": {"positions": "rotary"},
        "learned, from 0.02": {"token_std": 0.02},
    },
    seeds=tuple(range(10)),
    recipe=vitreous.Recipe(
        optimizer="adamw",
        learning_rate=1e-3,
        weight_decay=1e-4,
        decay_everything=True,
        batch_size=64,
        epochs=20,
        leave_out_last_batch=True,
        warmup=0.0,
        schedule="constant",
        precision="float32",
    ),
    material=vitreous.Material(train_images=6_000),
    note=(
        "Published for this setting: about 0.86 without positions and 7.5 points more with learned "
        "ones, at a learning rate that is not stated; here it is 1e-3, constant, for 20 epochs. "
        "Learned positions and the class token start as numbers of deviation 1, but for one arm."
    ),
)
