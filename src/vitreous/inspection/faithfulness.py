"""Is a map better than chance? Patches are taken away, or put back, in its order.

A map that knows what the answer rests on makes it fall early when the patches that it ranks first
are removed, and come back early when these are inserted. Two kinds of chance are held against it:
random orders of the same patches, and the same map of the same model with fresh weights. A map
that passes the first test only shows what the architecture does with any picture, not what was
learned. Sources: deletion and insertion, Petsiuk et al. (arXiv 1806.07421); fresh weights, Adebayo
et al. (arXiv 1810.03292).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import atanh, tanh
from statistics import fmean, stdev

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitreous.inspection.maps import over_pixels
from vitreous.inspection.relevance import at_rest, chosen_classes, explain
from vitreous.models.classifier import Classifier, build
from vitreous.shapes import Images

__all__ = ["Curves", "Effort", "Faithfulness", "area", "curves", "faithfulness", "judge"]

BATCH = 128
"""Images at once through the model."""
FEW = 32
"""Patches up to which each is a step of its own."""
ALPHA = 0.05
"""At most this share of random orders, the map's own among them, may do as well."""
ABOVE_FRESH = 2.5
"""A map has to gain more than so many times the largest gain of copies with fresh weights."""
LEAST = 0.2
"""And more than this, in units of probability: less is no effect."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Effort:
    """How much is tried: orders by chance, copies with fresh weights, steps of a curve."""

    orders: int = 59
    """At least 19, below which nothing could be better than chance."""
    fresh: int = 12
    steps: int = 16


@dataclass(frozen=True)
class Curves:
    """The answer's probability as patches go (deletion) and as they come (insertion)."""

    fractions: tuple[float, ...]
    """Of the patches, from none to all."""
    deletion: tuple[float, ...]
    insertion: tuple[float, ...]

    @property
    def gain(self) -> float:
        """Area under insertion minus area under deletion; a random order has 0 on average."""
        return area(self.fractions, self.insertion) - area(self.fractions, self.deletion)


@dataclass(frozen=True)
class Faithfulness:
    """What a map is worth, beside what chance is worth; `sentence` says it in words."""

    method: str
    answer: str
    """The class that the map explains."""
    curves: Curves
    random: tuple[Curves, ...]
    """Of random orders, each of its own seed."""
    fresh: tuple[float, ...]
    """Gains of the same method on copies with fresh weights; none where chance won already."""

    @property
    def gain(self) -> float:
        """Area under insertion minus area under deletion, in units of probability."""
        return self.curves.gain

    @property
    def as_good(self) -> int:
        """How many random orders gain at least as much."""
        return sum(curves.gain >= self.gain for curves in self.random)

    @property
    def beats_random(self) -> bool:
        """Whether random orders hardly ever do as well."""
        return (1 + self.as_good) / (1 + len(self.random)) <= ALPHA

    @property
    def needed(self) -> float:
        """What it has to gain to be clearly above what any fresh weights gain.

        The times are those of atanh, so that this stays below 1, the largest gain there is.
        """
        most = min(max(map(abs, self.fresh), default=0.0), 0.999)
        return max(LEAST, tanh(ABOVE_FRESH * atanh(most)))

    @property
    def beats_fresh(self) -> bool:
        """Whether it gains more than that."""
        return bool(self.fresh) and self.gain > self.needed

    @property
    def better(self) -> bool:
        """Whether the map is better than chance, in both senses."""
        return self.beats_random and self.beats_fresh

    @property
    def sentence(self) -> str:
        """The verdict, with its numbers."""
        gains, n = [curves.gain for curves in self.random], len(self.random)
        tried = (
            f"Inserting patches in its order gains {self.gain:.2f} of the probability of "
            f"{self.answer!r} over removing them; {n} random orders gain {fmean(gains):.2f} "
            f"(sd {stdev(gains):.2f}), and {self.as_good or 'none'} of them as much"
        )
        if not self.beats_random:
            return f"No better than chance. {tried}."
        fresh = (
            f"{len(self.fresh)} copies of the model with fresh weights gain up to "
            f"{max(map(abs, self.fresh), default=0.0):.2f}"
        )
        if not self.beats_fresh:
            return (
                f"No better than chance. {tried}, but {fresh}; only a gain above "
                f"{self.needed:.2f} would show what was learned, and not what the architecture "
                "does with any picture."
            )
        return f"Better than chance. {tried}; {fresh}."

    def _repr_html_(self) -> str:
        from vitreous.inspection.charts import faithfulness_chart

        return faithfulness_chart(self)


def faithfulness(
    model: Classifier,
    image: Float[Tensor, "1 c y x"],
    method: str = "relevance",
    *,
    answer: int | None = None,
    effort: Effort | None = None,
) -> Faithfulness:
    """Whether the map of a method is better than chance on one image, with the numbers.

    `method` is one of `relevance`'s; `answer` the class to explain, the model's own unless given.
    Raises ConfigError as `relevance` does.
    """
    return judge(model, image, [method], answer=answer, effort=effort)[method]


def judge(
    model: Classifier,
    image: Float[Tensor, "1 c y x"],
    methods: Sequence[str],
    *,
    answer: int | None = None,
    effort: Effort | None = None,
    tell: Tell | None = None,
) -> dict[str, Faithfulness]:
    """`faithfulness` of several methods, which share their random orders.

    `tell` is called with how many curves are done, of how many.
    """
    effort = effort or Effort()
    chosen = int(chosen_classes(model, image, answer))
    row, col = model.patch_embed.grid(image)
    steps, tell = (
        (row * col if row * col <= FEW else effort.steps),
        tell or (lambda _done, _of: None),
    )
    whole, done = effort.orders + len(methods) * (1 + effort.fresh), effort.orders
    orders = [random_order(row * col, seed) for seed in range(effort.orders)]
    random = []
    for number, order in enumerate(orders):
        tell(number, whole)
        random += curves(model, image, [order], chosen, steps)
    verdicts = {}
    for method in methods:
        tell(done, whole)
        mine = own_curves(model, image, method, chosen, steps)
        verdict = Faithfulness(method, model.class_names[chosen], mine, tuple(random), ())
        if verdict.beats_random:
            fresh = []
            for number, copy in enumerate(fresh_copies(model, effort.fresh)):
                tell(done + 1 + number, whole)
                fresh.append(own_curves(copy, image, method, None, steps).gain)
            verdict = replace(verdict, fresh=tuple(fresh))
        verdicts[method], done = verdict, done + 1 + effort.fresh
    tell(whole, whole)
    return verdicts


def own_curves(
    model: Classifier, image: Images, method: str, answer: int | None, steps: int
) -> Curves:
    """The curves of a model's own map, for the class that it answers unless another is given."""
    chosen = chosen_classes(model, image, answer)
    values = explain(model, image, chosen, method)[0]
    return curves(model, image, [order_of(values)], int(chosen), steps)[0]


def area(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Under a line through points, by trapezoids.

    >>> area([0.0, 0.5, 1.0], [1.0, 1.0, 0.0])
    0.75
    """
    pairs = zip(xs, xs[1:], ys, ys[1:], strict=False)
    return sum((right - left) * (low + high) / 2 for left, right, low, high in pairs)


def order_of(values: Float[Tensor, "row col"], seed: int = 0) -> Int[Tensor, " n"]:
    """Patches from the highest value to the lowest; equal ones in random order."""
    flat = values.flatten()
    luck = random_order(len(flat), seed).to(flat.device)
    return luck[flat[luck].argsort(descending=True, stable=True)]


def random_order(patches: int, seed: int) -> Int[Tensor, " n"]:
    """All patches, shuffled."""
    return torch.randperm(patches, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def curves(
    model: Classifier,
    image: Float[Tensor, "1 c y x"],
    orders: Sequence[Int[Tensor, " n"]],
    answer: int,
    steps: int,
) -> list[Curves]:
    """The curves of each order, in so many steps.

    A removed patch shows the image's own ground: the median of each channel.
    """
    grid = model.patch_embed.grid(image)
    counts = torch.linspace(0, grid[0] * grid[1], steps + 1).round().long()
    fractions = tuple((counts / counts[-1]).tolist())
    ranks = torch.stack([order.argsort() for order in orders])
    gone = (ranks[:, None] < counts[:, None].to(ranks.device)).unflatten(2, grid)
    deletion, insertion = (
        chances(model, image, hidden.flatten(0, 1), answer).unflatten(0, (len(orders), -1))
        for hidden in (gone, ~gone)
    )
    return [
        Curves(fractions, tuple(down), tuple(up))
        for down, up in zip(deletion.tolist(), insertion.tolist(), strict=True)
    ]


def chances(
    model: Classifier, image: Images, hidden: Tensor, answer: int
) -> Float[Tensor, " masks"]:
    """The answer's probability with the hidden patches (masks, row, col) showing the ground."""
    ground = image.flatten(2).median(dim=2).values[..., None, None]
    shape = (image.shape[2], image.shape[3])
    found = []
    with at_rest(model):
        for some in hidden.split(BATCH):
            mask = over_pixels(some.to(image), shape, model.config.patch_shape)[:, None].bool()
            logits = model(torch.where(mask.to(image.device), ground, image))
            found.append(logits.float().softmax(dim=1)[:, answer])
    return torch.cat(found)


def fresh_copies(model: Classifier, count: int) -> Iterator[Classifier]:
    """The same architecture with other random weights; torch's global generator is left alone."""
    like = next(model.parameters())
    for seed in range(count):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield build(model.config).to(like).eval()
