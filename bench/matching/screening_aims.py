"""How screening stands against its aims: F1, false positives, names in their own script, aliases, search.

    python bench screening_aims --data ./vettance-data --seed 1
    python bench screening_aims --data ./vettance-data --seed 2 --half second --json

Everything is drawn by the seed from the lists imported there, and from well-known companies that are on none.
`--half` takes one half of the names: mend by the misses of the first, measure by the second.
"""

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.matching.known_companies import KNOWN_COMPANIES
from bench.matching.listed_pairs import Drawn, Half, aliases, own_script, pairs, perturbed
from bench.matching.name_cases import ORGANIZATION, PERSON
from bench.matching.screening import newest_index
from vettance.watchlists.index import Index
from vettance.watchlists.labelled import CaseCounts, judge_pair, subject_of
from vettance.watchlists.match import Subject, match

BOUND = 75
_COMPANIES = 100


class Figure(NamedTuple):
    """One figure: what, of how many, the value, and the aim as text."""

    name: str
    cases: int
    value: float
    aim: str
    misses: list[list[Any]]


def judged(name: str, drawn: Iterable[Drawn], aim: str = "") -> Figure:
    """Compare the pairs with each other; return how many are held."""
    rows = list(drawn)
    misses = []
    for one in rows:
        found = judge_pair(one.case)
        score = found.score if found is not None else 0
        if (score >= BOUND) is not (one.case.expected == "match"):
            misses.append([one.case.tag, one.case.query["name"], (one.case.candidate or {})["name"], score])
    return Figure(name, len(rows), 1 - len(misses) / max(1, len(rows)), aim, misses)


def mixture(drawn: Iterable[Drawn]) -> list[Figure]:
    """Compare a mixture of pairs; return F1, recall and false positives."""
    counts = CaseCounts()
    misses: list[list[Any]] = []
    false: list[list[Any]] = []
    for one in drawn:
        found = judge_pair(one.case)
        score = found.score if found is not None else 0
        expected = one.case.expected == "match"
        counts.count(expected=expected, hit=score >= BOUND)
        if (score >= BOUND) is not expected:
            row = [one.case.tag, one.case.query["name"], (one.case.candidate or {})["name"], score]
            (misses if expected else false).append(row)
    positive = counts.true_positives + counts.false_negatives
    return [
        Figure("pairs: F1", counts.cases, counts.f1 or 0.0, ">= 0.985", []),
        Figure("pairs: recall", positive, counts.recall or 0.0, "", misses),
        Figure(
            "pairs: false positives",
            counts.cases - positive,
            counts.false_positive_rate or 0.0,
            "<= 0.01",
            false,
        ),
    ]


def searched(index: Index, drawn: Sequence[Drawn]) -> list[Figure]:
    """Search the lists for changed names; return recall of the search and of the scorer alone."""
    missed: list[list[Any]] = []
    unscored: list[list[Any]] = []
    dropped: list[list[Any]] = []
    for one in drawn:
        assert one.entity is not None
        subject = subject_of(one.case.query)
        scored = match(subject, one.entity, index.rarity)
        taken = scored is not None and scored.score >= BOUND
        # Lists hold the same entity several times, and people have namesakes: an equal name is as good.
        found = any(
            each.score >= BOUND
            and (
                each.entity.id == one.entity.id or any(name.text == one.listed for name in each.entity.names)
            )
            for each in index.search(subject)
        )
        row = [one.case.tag, one.case.query["name"], one.listed, scored.score if scored else 0]
        missed += [] if found else [row]
        unscored += [] if taken else [row]
        dropped += [row] if taken and not found else []
    count = max(1, len(drawn))
    return [
        Figure("search: recall", len(drawn), 1 - len(missed) / count, ">= 0.99", missed),
        Figure("search: recall of the scorer", len(drawn), 1 - len(unscored) / count, "", []),
        Figure("search: lost before scoring", len(drawn), len(dropped) / count, "<= 0.005", dropped),
    ]


def held_companies(index: Index, names: Sequence[str]) -> Figure:
    """Search the lists for companies that are not on them; return how many are held."""
    held = []
    for name in names:
        found = index.search(Subject(name=name, type=ORGANIZATION))
        if found and found[0].score >= BOUND:
            held.append(["company", name, found[0].matched_name, found[0].score])
    return Figure("companies not listed, held", len(names), float(len(held)), "<= 3 of 100", held)


def figures(index: Index, count: int, seed: int, half: Half) -> list[Figure]:
    """Return all figures."""
    entities = list(index.all_entities())
    chance = random.Random(seed)
    found = mixture(pairs(entities, count, half, chance))
    for kind in (ORGANIZATION, PERSON):
        label = "organisations" if kind is ORGANIZATION else "people"
        for script, rows in sorted(own_script(entities, kind, half).items()):
            aim = ">= 0.85" if kind is ORGANIZATION else ""
            found.append(judged(f"{label} in {script}", chance.sample(rows, min(len(rows), count)), aim))
        published = aliases(entities, kind, half)
        aim = ">= 0.9" if kind is ORGANIZATION else ""
        sample = chance.sample(published, min(len(published), count))
        found.append(judged(f"aliases of {label}", sample, aim))
    found += searched(index, perturbed(entities, count, half, chance))
    names = [name for name in KNOWN_COMPANIES if half.has(name)]
    found.append(held_companies(index, chance.sample(names, min(_COMPANIES, len(names)))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="a data folder with imported lists")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1_200, help="so many of each where there are as many")
    parser.add_argument("--half", type=Half, choices=list(Half), default=Half.BOTH)
    parser.add_argument("--misses", type=int, default=0, help="show so many of each figure")
    parser.add_argument("--only", default="", help="show figures whose name contains this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = figures(Index(newest_index(options.data)), options.count, options.seed, options.half)
    if options.json:
        rows = {one.name: {"cases": one.cases, "value": round(one.value, 4), "aim": one.aim} for one in found}
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for one in found:
        print(f"{one.name:<34} {one.cases:6d}  {one.value:8.4f}  {one.aim}")
        for row in one.misses[: options.misses] if options.only in one.name else ():
            print("      ", " / ".join(map(str, row)))
