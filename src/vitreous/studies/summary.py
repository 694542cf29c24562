"""What the lines of a study say: each arm, each contrast, and what nothing looks like."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vitreous.studies.cell import unpack
from vitreous.studies.lines import Header, Line
from vitreous.studies.statistics import (
    Interval,
    McNemar,
    Paired,
    deviation,
    holm,
    mcnemar,
    mean_interval,
    paired,
    pairs_needed,
)
from vitreous.studies.study import NULL_SEED

__all__ = ["ArmSummary", "Contrast", "Summary", "summarise"]


@dataclass(frozen=True)
class ArmSummary:
    """One arm over its seeds."""

    arm: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    interval: Interval
    """Of the mean."""
    floor: float | None
    """Accuracy of always guessing the most common class, where accuracy is measured."""
    seconds: float
    """Training, mean over seeds."""
    parameters: int | None

    @property
    def n(self) -> int:
        """Seeds."""
        return len(self.values)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds."""
        return deviation(self.values)


@dataclass(frozen=True)
class Contrast:
    """An arm against another, over the seeds that both have."""

    arm: str
    base: str
    paired: Paired
    p_holm: float
    family: int
    """Contrasts that Holm's adjustment counts."""
    images: McNemar | None
    """The first seed of both on the same test images: another question."""

    @property
    def can_be_significant(self) -> bool:
        """Whether any outcome at this n could have had an adjusted p below 0.05."""
        return self.paired.n >= pairs_needed(self.family)

    @property
    def is_significant(self) -> bool:
        """Whether it has, and its interval leaves out zero."""
        return self.p_holm < 0.05 and self.paired.difference.leaves_out_zero


@dataclass(frozen=True)
class Summary:
    """All that a report says, before it is drawn. Renders itself in notebooks."""

    header: Header
    arms: tuple[ArmSummary, ...]
    contrasts: tuple[Contrast, ...]
    null: Contrast | None
    """The base on other seeds, in the same order; none until there is a pair."""
    failed: tuple[Line, ...]
    lines: tuple[Line, ...]
    """Of the study's arms, the null arm's among them; those that failed left out."""

    def of(self, arm: str) -> list[Line]:
        """The lines of an arm, by seed."""
        return of_arm(self.lines, arm)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        header = self.header
        return {
            "study": header.study,
            "question": header.question,
            "measure": header.measure,
            "note": header.note,
            "code": header.code,
            "arms": [described_arm(arm) for arm in self.arms],
            "contrasts": [described(contrast) for contrast in self.contrasts],
            "null": self.null and described(self.null),
            "failed": [{"arm": f.arm, "seed": f.seed, "error": f.error} for f in self.failed],
        }

    def _repr_html_(self) -> str:
        from vitreous.studies.report import html_body

        return html_body(self)


def summarise(header: Header, lines: Sequence[Line]) -> Summary:
    """Sum up what there is, also while a study runs. Arms without a result are left out."""
    good = [line for line in lines if not line.error]
    named = {arm: of_arm(good, arm) for arm in header.arms}
    return Summary(
        header=header,
        arms=tuple(arm_summary(header, arm, own) for arm, own in named.items() if own),
        contrasts=contrasts(header, good),
        null=null_contrast(header, good),
        failed=tuple(line for line in lines if line.error),
        lines=tuple(line for line in good if line.arm in {*header.arms, header.null}),
    )


def of_arm(lines: Sequence[Line], arm: str) -> list[Line]:
    """The lines of an arm, by seed."""
    return sorted((line for line in lines if line.arm == arm), key=lambda line: line.seed)


def arm_summary(header: Header, arm: str, lines: Sequence[Line]) -> ArmSummary:
    """One arm from its lines."""
    values = tuple(line.measures[header.measure] for line in lines)
    measures = lines[0].measures
    return ArmSummary(
        arm=arm,
        values=values,
        seeds=tuple(line.seed for line in lines),
        interval=mean_interval(values),
        floor=measures.get("floor"),
        seconds=sum(line.train_seconds for line in lines) / len(lines),
        parameters=int(measures["parameters"]) if "parameters" in measures else None,
    )


def contrasts(header: Header, lines: Sequence[Line]) -> tuple[Contrast, ...]:
    """Every arm that shares seeds with the one it is compared with, adjusted for their number."""
    pairs = {
        (arm, base): matched(of_arm(lines, arm), of_arm(lines, base))
        for arm, base in header.contrasts.items()
    }
    compared = {names: compare(header, some) for names, some in pairs.items() if some}
    adjusted = holm([one.p for one in compared.values()])
    return tuple(
        Contrast(*names, one, p, len(compared), same_images(*pairs[names][0]))
        for (names, one), p in zip(compared.items(), adjusted, strict=True)
    )


def null_contrast(header: Header, lines: Sequence[Line]) -> Contrast | None:
    """The base against itself on the other seeds: what a difference of nothing looks like."""
    pairs = matched(of_arm(lines, header.null), of_arm(lines, header.base), apart=NULL_SEED)
    if not pairs:
        return None
    one = compare(header, pairs)
    return Contrast(header.null, header.base, one, one.p, 1, same_images(*pairs[0]))


def matched(
    lines: Sequence[Line], others: Sequence[Line], *, apart: int = 0
) -> list[tuple[Line, Line]]:
    """Each line with the other arm's of the same seed, or of the one that is so much lower."""
    by_seed = {line.seed: line for line in others}
    return [(line, by_seed[line.seed - apart]) for line in lines if line.seed - apart in by_seed]


def compare(header: Header, pairs: Sequence[tuple[Line, Line]]) -> Paired:
    """Two arms by what the study measures."""
    arm, base = ([pair[side].measures[header.measure] for pair in pairs] for side in (0, 1))
    return paired(arm, base)


def same_images(one: Line, other: Line) -> McNemar | None:
    """The two models on each test image; none where they were not asked the same ones."""
    asked = [{k: v for k, v in line.data_sha256.items() if "test" in k} for line in (one, other)]
    if not one.n or asked[0] != asked[1]:
        return None
    return mcnemar(unpack(one.wrong, one.n), unpack(other.wrong, other.n))


def described_arm(arm: ArmSummary) -> dict[str, Any]:
    """An arm for programs."""
    return {
        "arm": arm.arm,
        "n": arm.n,
        "mean": arm.interval.mean,
        "low": arm.interval.low,
        "high": arm.interval.high,
        "deviation": arm.deviation,
        "values": list(arm.values),
        "seeds": list(arm.seeds),
        "floor": arm.floor,
        "train_seconds": arm.seconds,
        "parameters": arm.parameters,
    }


def described(contrast: Contrast) -> dict[str, Any]:
    """A contrast for programs."""
    one = contrast.paired
    return {
        "arm": contrast.arm,
        "base": contrast.base,
        "n": one.n,
        "mean_difference": one.difference.mean,
        "low": one.difference.low,
        "high": one.difference.high,
        "bootstrap_low": one.bootstrap.low,
        "bootstrap_high": one.bootstrap.high,
        "intervals_agree": one.intervals_agree,
        "p": one.p,
        "p_holm": contrast.p_holm,
        "can_be_significant": contrast.can_be_significant,
        "significant": contrast.is_significant,
        "wins": one.wins,
        "losses": one.losses,
        "ties": one.ties,
        "mcnemar": contrast.images and asdict(contrast.images),
    }
