"""The summary of a run: each claim with its bounds, what was measured, and a verdict."""

from collections.abc import Container
from dataclasses import dataclass
from itertools import groupby
from typing import Self

from tierdex_driver import verdicts
from tierdex_driver.definitions import Claim, Figure
from tierdex_driver.measure import Missing
from tierdex_driver.store import Row, Store
from tierdex_driver.verdicts import Ratio, Verdict

NOT_RUN = "not run"


@dataclass(frozen=True)
class Result:
    """A figure with its rows and the verdicts on its claims, in the order of the definition."""

    figure: Figure
    rows: list[Row]
    verdicts: list[Verdict]
    reasons: list[str]

    @classmethod
    def of(cls, figure: Figure, scale: str, store: Store, missing: Missing) -> Self:
        cells = figure.cells(scale)
        rows = [row for cell in cells for row in store.rows(cell)]
        left = [cell for cell in cells if not store.rounds(cell)]
        reasons = list(dict.fromkeys(missing.of(cell) or store.failure(cell) or NOT_RUN for cell in left))
        return cls(figure, rows, [verdicts.judge(figure, claim, rows) for claim in figure.claims], reasons)

    @property
    def was_run(self) -> bool:
        """Whether anything was measured, or everything that this machine can."""
        return bool(self.rows) or NOT_RUN not in self.reasons


def control_text(claim: Claim, results: dict[str, Result]) -> str:
    """What the control of a claim says about the reason why it differs."""
    if not claim.because:
        return "not explained"
    control = results.get(claim.control)
    if control is None or not control.verdicts:
        return f"perhaps because {claim.because}"
    found = {verdict.name for verdict in control.verdicts}
    if found == {verdicts.AGREES}:
        return f"because {claim.because}: without that the claim holds ({claim.control})"
    if verdicts.DIFFERS in found:
        return f"not because {claim.because}: the claim differs without that too ({claim.control})"
    return f"perhaps because {claim.because} ({claim.control} is undecided)"


def ratios_text(ratios: tuple[Ratio, ...]) -> str:
    """The ratio with its interval; of several the smallest and the largest."""
    if not ratios:
        return "-"
    if len(ratios) == 1:
        return ratio_text(ratios[0])
    least, most = (end(ratios, key=lambda ratio: ratio.mean) for end in (min, max))
    return f"{ratio_text(least)} to {ratio_text(most)} ({len(ratios)} ratios)"


def ratio_text(ratio: Ratio) -> str:
    low, high = ratio.interval()
    if ratio.exact or len(ratio.rounds) < 2:
        return f"{ratio.mean:.3g}"
    return f"{ratio.mean:.3g} [{low:.3g}, {high:.3g}]"


def aligned(rows: list[dict[str, str]], left: Container[int]) -> list[list[str]]:
    """The headings and rows of a table with columns of equal width: texts are on the left, numbers on the right."""
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.ljust if at in left else str.rjust for at in range(len(widths))]
    return [[side(text, width) for side, text, width in zip(sides, line, widths, strict=True)] for line in lines]


def markdown(results: list[Result], scale: str, command: str) -> str:
    """The summary as a page of Markdown."""
    by_name = {result.figure.name: result for result in results}
    lines = [
        "# What the papers found, and what was measured here",
        "",
        f"`{command}`. {counts(results)}",
        "",
        "A ratio has its 95% interval over the rounds, in which its two cells alternate. A claim *agrees* if all its",
        "ratios lie within the bounds with their intervals, *differs* if one lies outside, and is *undecided* otherwise.",
        "",
    ]
    for title, group in groupby(results, lambda result: result.figure.paper["title"]):
        lines += [f"## {title}", "", "| figure | claim | paper | condition | here | rounds | verdict |"]
        lines.append("|---|---|---|---|---|---:|---|")
        for result in group:
            for claim, verdict in zip(result.figure.claims, result.verdicts, strict=True):
                lines.append(f"| {' | '.join(cells_of(result, claim, verdict, by_name))} |")
        lines.append("")
    if scale == "small":
        lines.insert(4, "**Nothing at the scale `small` says anything about a claim.**\n")
    return "\n".join(lines)


def cells_of(result: Result, claim: Claim, verdict: Verdict, results: dict[str, Result]) -> list[str]:
    rounds = min((len(ratio.rounds) for ratio in verdict.ratios), default=0)
    text = verdict.name
    if verdict.name == verdicts.DIFFERS:
        first = verdict.outside[0]
        point = " ".join(f"{name}={value}" for name, value in first.of if value)
        more = f" and {len(verdict.outside) - 1} more" if len(verdict.outside) > 1 else ""
        text += f" at {ratio_text(first)} ({point}){more}: {control_text(claim, results)}"
    elif verdict.name == verdicts.NOT_MEASURABLE:
        text = f"{NOT_RUN if not result.was_run else text}: {'; '.join(result.reasons) or 'no such points'}"
    if claim.by_construction:
        text += " (by construction)"
    texts = [result.figure.name, claim.text, claim.paper, claim.condition(), ratios_text(verdict.ratios), str(rounds), text]
    return [text.replace("|", "\\|") for text in texts]


def counts(results: list[Result]) -> str:
    """How many claims have each verdict, controls apart."""
    papers = [result for result in results if not result.figure.is_control]
    names = [verdict.name for result in papers for verdict in result.verdicts if result.was_run]
    order = (verdicts.AGREES, verdicts.DIFFERS, verdicts.UNDECIDED, verdicts.NOT_MEASURABLE)
    found = ", ".join(f"{names.count(name)} {name}" for name in order)
    trivial = sum(claim.by_construction for result in papers if result.was_run for claim in result.figure.claims)
    return f"{len(names)} claims: {found}; {trivial} of them hold by construction."
