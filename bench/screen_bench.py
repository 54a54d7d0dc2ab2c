"""How fast a screening is in process, how long an index takes to build, and what it takes in memory.

    python bench/screen_bench.py --data ./vettance-data --cases people.jsonl     with the lists imported there
    python bench/screen_bench.py --names 3000000                                 with that many invented names

`--cases` are labelled cases; their queries are screened. Without them, names of the lists themselves are
screened with one letter changed. Times are processor time of the thread, which other load disturbs least.
"""

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vettance.watchlists.build import build_index
from vettance.watchlists.entity import Entity, EntityType, ListedName, NameQuality
from vettance.watchlists.index import Index
from vettance.watchlists.labelled import read_cases, subject_of
from vettance.watchlists.match import Subject
from vettance.watchlists.screening import screen
from vettance.watchlists.shelf import shelf_of

_SYLLABLES = [a + b + c for a in ("", "b", "k", "m", "r", "s") for b in "aeio" for c in ("", "n", "r")]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def invented(count: int, chance: random.Random) -> Iterator[Entity]:
    """Yield entities of three names until there are `count`; some words are common, most are rare."""
    given = ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 3))) for _ in range(4_000)]
    family = ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(400_000)]
    weights = [1 / (rank + 20) for rank in range(len(given))]
    for number in range(count // 3):
        one, two = chance.choices(given, weights, k=2)
        last, other = chance.choice(family), chance.choice(family)
        names = (
            ListedName(f"{one} {last}".title(), NameQuality.PRIMARY),
            ListedName(f"{one} {two} {last}".title()),
            ListedName(f"{two} {other}".title()),
        )
        yield Entity(id=f"csv:{number}", source="csv", type=EntityType.INDIVIDUAL, names=names)


def newest_index(data: Path) -> Path:
    """Return the index built last in a data folder."""
    return max((shelf_of(data) / "index").iterdir(), key=lambda path: path.stat().st_mtime)


def misspelt(index: Index, count: int, chance: random.Random) -> list[Subject]:
    """Return names of the lists with one letter changed."""
    subjects = []
    for _ in range(count):
        entity = index.entity(chance.randrange(index.entities))
        text = chance.choice(entity.names).text
        place = chance.randrange(len(text))
        changed = text[:place] + chance.choice(_LETTERS) + text[place + 1 :]
        subjects.append(
            Subject(name=changed, type=None if entity.type is EntityType.UNKNOWN else entity.type)
        )
    return subjects


def memory_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def rebuild(index: Index) -> dict[str, float]:
    """Build the same index again aside and say what that took."""
    before_s = time.thread_time()
    with tempfile.TemporaryDirectory() as folder:
        build_index(Path(folder) / "index", index.all_entities(), index.versions)
    return {"buildSeconds": round(time.thread_time() - before_s, 2), "buildMemoryMb": memory_mb()}


def measure(index: Index, subjects: list[Subject], warm: int) -> dict[str, float]:
    """Screen the subjects one by one; the first `warm` fill the caches and are not counted."""
    taken_ms = []
    for number, subject in enumerate(subjects):
        before_s = time.thread_time()
        screen(index, subject)
        if number >= warm:
            taken_ms.append(1000 * (time.thread_time() - before_s))
    taken_ms.sort()
    return {
        "screenings": len(taken_ms),
        "p50Ms": round(taken_ms[len(taken_ms) // 2], 2),
        "p99Ms": round(taken_ms[int(len(taken_ms) * 0.99)], 2),
        "perSecond": round(1000 * len(taken_ms) / sum(taken_ms)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--names", type=int, default=0)
    parser.add_argument("--cases", type=Path, nargs="*", default=[])
    parser.add_argument("--count", type=int, default=2_000)
    options = parser.parse_args()
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as scratch:
        found: dict[str, float] = {}
        folder = Path(scratch) / "index"
        if options.data is not None:
            folder = newest_index(options.data)
        else:
            before_s = time.thread_time()
            build_index(folder, invented(options.names or 300_000, chance), {"csv": "invented"})
            found |= {"buildSeconds": round(time.thread_time() - before_s, 2), "buildMemoryMb": memory_mb()}
        before_s = time.perf_counter()
        index = Index(folder)
        found["openMs"] = round(1000 * (time.perf_counter() - before_s), 1)
        found |= {"entities": index.entities, "names": index.names}
        found["fileMb"] = sum(path.stat().st_size for path in folder.iterdir()) // 2**20
        if options.cases:
            subjects = [subject_of(case.query) for case in read_cases(options.cases)]
            chance.shuffle(subjects)
            subjects = subjects[: options.count]
        else:
            subjects = misspelt(index, options.count, chance)
        found |= measure(index, subjects, len(subjects) // 10)
        found["memoryMb"] = memory_mb()
        if options.data is not None:
            found |= rebuild(index)
    print(json.dumps(msgspec.to_builtins(found), indent=2))


if __name__ == "__main__":
    main()
