"""How matching fares on classes of names: recall or false positives for each kind of change, with the misses.

    python bench name_classes                                    with the sample list
    python bench name_classes --data ./vettance-data --search    with the lists imported there
    python bench name_classes --data ./vettance-data --out cases.jsonl

Cases are made of listed names and of common names in several scripts, by a seed. Each pairs a query with one
name; `--search` puts those names on the lists and searches them all. What a class expects is true by its
construction, not read by a person. `--out` writes them for `vettance watchlist evaluate`.
"""

import argparse
import itertools
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import vettance.watchlists
from bench.matching.name_bodies import bodies
from bench.matching.name_cases import Maker, Pool, pool_of
from bench.matching.name_cultures import cultures
from bench.matching.name_people import people
from bench.matching.screening import newest_index
from vettance.watchlists.entity import Entity
from vettance.watchlists.index import Index
from vettance.watchlists.index_build import build_index
from vettance.watchlists.labelled import LabelledCase, entity_of, judge_pair, subject_of
from vettance.watchlists.sources import own

BOUND = 75


def makers() -> dict[str, Maker]:
    """Return every class by its name; those that begin with `not:` must not match."""
    return cultures() | people() | bodies()


def cases_of(pool: Pool, count: int, seed: int, only: str) -> Iterator[LabelledCase]:
    """Yield up to `count` different cases of each class whose name contains `only`."""
    for tag, make in makers().items():
        if only.casefold() not in tag.casefold():
            continue
        chance = random.Random(f"{seed}/{tag}")
        seen: set[tuple[str, str]] = set()
        for _ in range(count * 40):
            try:
                case = make(pool, chance)
            except IndexError:
                # The list has nothing of the kind.
                break
            if case is None or case.candidate is None:
                continue
            key = (str(case.query["name"]), str(case.candidate["name"]))
            if key in seen or (key[0] == key[1] and "dob" not in case.query and "ids" not in case.query):
                continue
            seen.add(key)
            yield case
            if len(seen) == count:
                break


def searched(cases: Sequence[LabelledCase], entities: Sequence[Entity], folder: Path) -> Index:
    """Build an index of the lists and of the candidates of the cases, by the number of the case."""
    listed = []
    for number, case in enumerate(cases):
        assert case.candidate is not None
        listed.append(entity_of({**case.candidate, "id": f"class:{number}"}))
    build_index(folder / "index", itertools.chain(entities, listed), {"class": "made"})
    return Index(folder / "index")


def run(cases: Sequence[LabelledCase], index: Index | None) -> dict[str, Any]:
    """Judge the cases; return for each class how many there were, the rate and the misses."""
    found: dict[str, Any] = {}
    for number, case in enumerate(cases):
        row = found.setdefault(case.tag, {"cases": 0, "hits": 0, "lost": 0, "misses": []})
        if index is None:
            match = judge_pair(case)
        else:
            matches = index.search(subject_of(case.query))
            match = next((one for one in matches if one.entity.id == f"class:{number}"), None)
            if match is None or match.score < BOUND:
                # Another entity of the same name is as good.
                same = [one for one in matches if one.entity.name == str((case.candidate or {})["name"])]
                match = same[0] if same else match
        hit = match is not None and match.score >= BOUND
        row["cases"] += 1
        row["hits"] += hit
        if index is not None and not hit:
            # The scorer of the search, which counts rare words more, would have taken it.
            scored = judge_pair(case, index.rarity)
            row["lost"] += scored is not None and scored.score >= BOUND
        if hit is not (case.expected == "match"):
            score = match.score if match is not None else 0
            row["misses"].append([case.query["name"], (case.candidate or {}).get("name"), score])
    return found


def summary(found: dict[str, Any], misses: int) -> dict[str, Any]:
    """Return rates: of a class that must match its recall, of one that must not its false positives."""
    rows = {}
    for tag, row in found.items():
        kind = "falsePositiveRate" if tag.startswith("not: ") else "recall"
        rows[tag] = {
            "cases": row["cases"],
            kind: round(row["hits"] / row["cases"], 4),
            "lost": row["lost"],
            "misses": row["misses"][:misses],
        }
    positive = [row for tag, row in found.items() if not tag.startswith("not: ")]
    negative = [row for tag, row in found.items() if tag.startswith("not: ")]
    totals = {}
    for name, group in (("recall", positive), ("falsePositiveRate", negative)):
        if cases := sum(row["cases"] for row in group):
            totals[name] = round(sum(row["hits"] for row in group) / cases, 4)
    if positive:
        # Zero without --search, by which alone something can be lost.
        totals["lostBeforeScoring"] = round(
            sum(row["lost"] for row in positive) / sum(row["cases"] for row in positive), 4
        )
    return {"bound": BOUND, "classes": rows, "total": totals}


def sample() -> list[Entity]:
    """Return the entities of the sample list."""
    return list(own.read("sample", [Path(vettance.watchlists.__file__).parent / "sample" / "sample.csv"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a data folder with imported lists; else the sample list")
    parser.add_argument("--count", type=int, default=200, help="cases of each class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="classes whose name contains this")
    parser.add_argument(
        "--search", action="store_true", help="search the lists with the made names among them"
    )
    parser.add_argument("--misses", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the cases here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    entities = list(Index(newest_index(options.data)).all_entities()) if options.data else sample()
    cases = list(cases_of(pool_of(entities), options.count, options.seed, options.only))
    if options.out:
        options.out.write_bytes(b"\n".join(msgspec.json.encode(case) for case in cases) + b"\n")
    with tempfile.TemporaryDirectory() as folder:
        index = searched(cases, entities, Path(folder)) if options.search else None
        result = summary(run(cases, index), options.misses)
    if options.json:
        print(json.dumps(result, ensure_ascii=False, indent=2))
        return
    for tag, row in result["classes"].items():
        rate = row.get("recall", row.get("falsePositiveRate"))
        print(f"{tag:<44} {row['cases']:5d}  {100 * rate:6.1f} %")
        for asked, listed, score in row["misses"]:
            print(f"      {asked} / {listed}  {score}")
    print(result["total"])
