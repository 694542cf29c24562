"""What happens to attention when scores are not divided by the root of the width?

    vitreous study scaling

Nothing is trained: queries and keys are independent numbers with mean 0 and variance 1. About a
minute on two cores, nearly all of it for starting 70 processes.
"""

import vitreous

WIDTHS = (1, 4, 512)
scaled = {f"{width}, divided": {"head_dim": width} for width in WIDTHS[:-1]}
plain = {f"{width}, not divided": {"head_dim": width, "scaled": False} for width in WIDTHS}

STUDY = vitreous.Study(
    name="scaling",
    question="What does dividing scores by √d do to attention, as d grows?",
    base=vitreous.RandomScores(head_dim=512),
    base_name="512, divided",
    arms=scaled | plain,
    against={f"{width}, not divided": f"{width}, divided" for width in WIDTHS},
    seeds=tuple(range(10)),
    along="numbers per head, d",
    series={
        name: {f"{width}, {name}": float(width) for width in WIDTHS}
        for name in ("divided", "not divided")
    },
    note=(
        "64 queries read 64 keys in 64 sequences; entropy in nats, where log 64 = 4.16 is even "
        "attention. The gradient is of one row's product with random numbers, with respect to the "
        "row's scores."
    ),
)
