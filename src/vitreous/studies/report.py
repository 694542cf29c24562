"""A study's report: markdown, PNG figures and one self-contained page, from its lines alone."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from vitreous.checkpoints.files import write_bytes
from vitreous.errors import RunError
from vitreous.figures import page, style
from vitreous.studies.draw import FIGURES, words
from vitreous.studies.lines import LINES, read_lines
from vitreous.studies.statistics import Interval, pairs_needed
from vitreous.studies.summary import ArmSummary, Contrast, Summary, summarise

__all__ = ["PAGE", "TEXT", "read_summary", "render"]

TEXT, PAGE = "report.md", "report.html"
ARM_HEAD = ("arm", "n", "mean", "95 % interval of the mean", "sd", "lowest to highest")
ARM_HEAD += ("floor", "parameters", "seconds to train")
CONTRAST_HEAD = (
    "arm − base",
    "n",
    "mean difference",
    "95 % interval (t)",
    "95 % interval (BCa)",
    "p",
    "p (Holm)",
    "wins, losses, ties",
)


def read_summary(out: Path) -> Summary:
    """What a folder's lines say; raises RunError where there are none yet."""
    found = read_lines(out)
    if found is None or not any(not line.error for line in found[1]):
        raise RunError(f"{out / LINES}: no cell of a study has ended there yet")
    return summarise(*found)


def render(out: Path) -> Summary:
    """Write every part of the report into the folder; it may be done while the study runs."""
    summary = read_summary(out)
    drawn = {name: figure for name, draw in FIGURES.items() if (figure := draw[0](summary))}
    for name, figure in drawn.items():
        write_bytes(out / f"{name}.png", style.png(figure))
    write_bytes(out / TEXT, markdown(summary, list(drawn)).encode())
    body = [*html_parts(summary), *(picture(name, figure) for name, figure in drawn.items())]
    title = f"Study: {summary.header.study}"
    write_bytes(out / PAGE, page.page(title, [*body, *details(summary)]).encode())
    return summary


def picture(name: str, figure: Figure) -> str:
    """A figure for the page, with what it shows."""
    return page.chart(style.svg(figure), FIGURES[name][1])


def markdown(summary: Summary, figures: list[str]) -> str:
    """The report as text."""
    header = summary.header
    parts = [f"# {header.study}", header.question, *filter(None, [header.note])]
    parts += [f"- {sentence}" for sentence in verdicts(summary)]
    parts += [markdown_table(ARM_HEAD, arm_rows(summary))]
    parts += [markdown_table(CONTRAST_HEAD, contrast_rows(summary))]
    parts += [f"![{FIGURES[name][1]}]({name}.png)" for name in figures]
    parts += list(footnotes(summary))
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def markdown_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of text cells."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def html_parts(summary: Summary) -> Iterator[str]:
    """The page above its figures."""
    header = summary.header
    yield f'<p class="lead">{escape(header.question)}</p>'
    if header.note:
        yield f'<p class="muted">{escape(header.note)}</p>'
    yield "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in verdicts(summary)) + "</ul>"
    yield page.section("Arms", page.table(arm_rows(summary), head=ARM_HEAD))
    yield page.section("Contrasts", page.table(contrast_rows(summary), head=CONTRAST_HEAD))


def html_body(summary: Summary) -> str:
    """What a notebook shows."""
    return "\n".join(html_parts(summary))


def details(summary: Summary) -> Iterator[str]:
    """The page below its figures."""
    yield page.section(
        "How to read this", *(f"<p>{escape(text)}</p>" for text in footnotes(summary))
    )


def verdicts(summary: Summary) -> Iterator[str]:
    """What the study found, a sentence for each contrast, and never more than n allows."""
    for contrast in summary.contrasts:
        yield f"{found(summary, contrast)} {weight(contrast)}"
    if summary.null:
        yield f"A difference of nothing: {found(summary, summary.null)}"
    else:
        yield "There is no null arm yet: what a difference of nothing looks like is not known."
    if summary.failed:
        count, first = len(summary.failed), summary.failed[0]
        yield f"{count} cells failed, among them {first.arm}, seed {first.seed}: {first.error}"


def found(summary: Summary, contrast: Contrast) -> str:
    """One contrast in a sentence."""
    one = contrast.paired
    return (
        f"{contrast.arm} against {contrast.base}: {difference(summary, one.difference.mean)} "
        f"({span(summary, one.difference)}, n = {one.n}), "
        f"more in {one.wins} of {one.n} pairs, less in {one.losses}."
    )


def weight(contrast: Contrast) -> str:
    """What may be called significant, what not, and where the word has no place."""
    one, family = contrast.paired, contrast.family
    if not contrast.can_be_significant:
        return (
            f"Whether that is more than chance, {one.n} pairs cannot tell: "
            f"{pairs_needed(family)} are needed for {family} contrasts."
        )
    verdict = "Significant" if contrast.is_significant else "Not significant"
    doubt = "" if one.intervals_agree else "; the two intervals disagree about zero: take care"
    p_values = f"sign-flip p = {one.p:.4f}, Holm over {family}: {contrast.p_holm:.4f}"
    return f"{verdict} at 5 % ({p_values}{doubt})."


def arm_rows(summary: Summary) -> list[tuple[str, ...]]:
    """The table of arms."""
    return [arm_row(arm) for arm in summary.arms]


def arm_row(arm: ArmSummary) -> tuple[str, ...]:
    """One arm."""
    low, high = arm.interval.low, arm.interval.high
    return (
        arm.arm,
        str(arm.n),
        f"{arm.interval.mean:.4f}",
        "one seed: none" if low is None or high is None else f"{low:.4f} to {high:.4f}",
        "one seed: none" if arm.deviation is None else f"{arm.deviation:.4f}",
        f"{min(arm.values):.4f} to {max(arm.values):.4f}",
        "–" if arm.floor is None else f"{arm.floor:.4f}",
        "–" if arm.parameters is None else f"{arm.parameters:,}",
        f"{arm.seconds:.1f}",
    )


def contrast_rows(summary: Summary) -> list[tuple[str, ...]]:
    """The table of contrasts, the null arm last."""
    contrasts = [*summary.contrasts, *filter(None, [summary.null])]
    return [contrast_row(summary, contrast) for contrast in contrasts]


def contrast_row(summary: Summary, contrast: Contrast) -> tuple[str, ...]:
    """One contrast."""
    one = contrast.paired
    null = contrast is summary.null
    return (
        f"{contrast.arm} − {contrast.base}" + (" (null)" if null else ""),
        str(one.n),
        difference(summary, one.difference.mean),
        span(summary, one.difference),
        span(summary, one.bootstrap),
        f"{one.p:.4f}",
        "–" if null else f"{contrast.p_holm:.4f}",
        f"{one.wins}, {one.losses}, {one.ties}",
    )


def in_points(summary: Summary) -> bool:
    """Whether differences are of accuracies, and told in percentage points."""
    return summary.header.measure.endswith("accuracy")


def difference(summary: Summary, value: float) -> str:
    """A difference with its sign and unit."""
    return f"{100 * value:+.2f} points" if in_points(summary) else f"{value:+.4f}"


def span(summary: Summary, interval: Interval) -> str:
    """Both ends of an interval."""
    if interval.low is None or interval.high is None:
        return "no interval"
    if in_points(summary):
        return f"{100 * interval.low:+.2f} to {100 * interval.high:+.2f}"
    return f"{interval.low:+.4f} to {interval.high:+.4f}"


def footnotes(summary: Summary) -> Iterator[str]:
    """How the numbers were made, and what they do not say."""
    machines = sorted({line.machine for line in summary.lines if line.machine})
    versions = sorted({line.versions["torch"] for line in summary.lines if line.versions})
    yield (
        f"Compared by {words(summary.header.measure)}. Arms are paired by seed; intervals are "
        "95 %, Student's t over the paired differences, and the BCa bootstrap beside it, which is "
        "too narrow below ten pairs. p is that of the sign-flip permutation test, which cannot be "
        "below 2 / 2ⁿ for n pairs; Holm's adjustment counts every contrast but the null arm."
    )
    if summary.header.measure == "test_accuracy":
        looks = len(summary.lines)
        yield f"The test images were scored {looks} times, once for each trained model, at its end."
    yield from image_notes(summary)
    yield (
        f"Made on {'; '.join(machines)}, torch {', '.join(versions)}, by code version "
        f"{summary.header.code}. The raw lines are in {LINES}."
    )


def image_notes(summary: Summary) -> Iterator[str]:
    """McNemar's test, labelled as the other question that it answers."""
    asked = [one for one in summary.contrasts if one.images is not None]
    if not asked:
        return
    told = "; ".join(
        f"{one.arm} against {one.base}: {one.images.only_first_wrong} and "
        f"{one.images.only_second_wrong} images wrong in one only, p = {one.images.p:.2g}"
        for one in asked
        if one.images is not None
    )
    yield (
        "Another question: do the two models of the first seed differ on these very test images? "
        f"McNemar's exact test: {told}. It says nothing about other seeds."
    )
