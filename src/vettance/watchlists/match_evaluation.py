"""Evaluation: labelled cases run through matching, counted for each tag."""

from typing import Any

from vettance.watchlists.index import Index
from vettance.watchlists.labelled import CaseCounts, LabelledCase, WrongCase, judge_pair, judge_search


class Evaluation:
    """Runs cases and counts. `bound` is the score, 0 to 100, from which a match counts as found."""

    def __init__(self, index: Index | None, bound: int, *, search: bool) -> None:
        self._index = index
        self._search = search
        self.bound = bound
        self.tags: dict[str, CaseCounts] = {}
        self.total = CaseCounts()
        self.misses: list[WrongCase] = []
        self.skipped = 0

    def run(self, case: LabelledCase) -> None:
        """Run one case; one that needs a list that is not there is counted as skipped."""
        if self._skips(case):
            self.skipped += 1
            return
        if self._index is not None and (self._search or case.candidate is None):
            found = judge_search(case, self._index)
        else:
            found = judge_pair(case)
        expected = case.expected == "match"
        hit = found is not None and found.score >= self.bound
        for tally in (self.total, self.tags.setdefault(case.tag, CaseCounts())):
            tally.count(expected=expected, hit=hit)
        if hit is not expected:
            listed = found.matched_name if found is not None else (case.candidate or {}).get("name", "")
            score = found.score if found is not None else 0
            self.misses.append(
                WrongCase(case.tag, case.expected, str(case.query["name"]), str(listed), score)
            )

    def _skips(self, case: LabelledCase) -> bool:
        if case.candidate is None:
            return self._index is None
        if not self._search:
            return False
        source = str(case.candidate.get("id") or "").partition(":")[0]
        return self._index is None or source not in self._index.sources

    def result(self, misses: int) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "bound": self.bound,
            "skipped": self.skipped,
            "total": _values(self.total),
            "tags": {tag: _values(tally) for tag, tally in sorted(self.tags.items())},
            "misses": [
                {"tag": m.tag, "expected": m.expected, "query": m.query, "found": m.found, "score": m.score}
                for m in self.misses[:misses]
            ],
        }


def _values(tally: CaseCounts) -> dict[str, Any]:
    return {
        "cases": tally.cases,
        "precision": _rounded(tally.precision),
        "recall": _rounded(tally.recall),
        "f1": _rounded(tally.f1),
        "falsePositiveRate": _rounded(tally.false_positive_rate),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def report(evaluation: Evaluation, misses: int) -> str:
    """Write the outcome as a table for people."""
    width = max([len(tag) for tag in evaluation.tags] + [5])
    lines = [f"{'tag':<{width}}  cases  precision  recall      F1     FPR"]
    rows = [*sorted(evaluation.tags.items()), ("total", evaluation.total)]
    for tag, tally in rows:
        parts = (tally.precision, tally.recall, tally.f1, tally.false_positive_rate)
        shown = "  ".join("      –" if part is None else f"{part:7.4f}" for part in parts)
        lines.append(f"{tag:<{width}}  {tally.cases:5d}    {shown}")
    skipped = f"{evaluation.skipped:,} {'case was' if evaluation.skipped == 1 else 'cases were'} left out"
    lines.append(f"A match counts from {evaluation.bound}; {skipped}.")
    if evaluation.misses and misses:
        lines.append(f"\nThe first {min(misses, len(evaluation.misses))} of {len(evaluation.misses)} misses:")
        lines.extend(
            f"  {miss.tag} (expected {miss.expected}): {miss.query} / {miss.found} scored {miss.score}"
            for miss in evaluation.misses[:misses]
        )
    return "\n".join(lines)
