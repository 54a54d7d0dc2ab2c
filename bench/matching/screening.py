"""How fast a screening is in process and over HTTP, how long an index takes to build, and what it takes.

    python bench screening --data ./vettance-data --cases people.jsonl     with the lists imported there
    python bench screening --names 3000000                                 with that many invented names
    python bench screening --data ./vettance-data --http                   a service on a copy of it

`--cases` are labelled cases; their queries are screened. Without them, names of the lists themselves are
screened with one letter changed. Times in process are processor time of the thread, which other load disturbs
least. `--http` measures durable screenings on one web process, then once more while lists are imported that
have the index swapped, and then how long known subjects take to be screened again.
"""

import argparse
import gc
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.client.blocking import ask
from bench.client.load import Result, measure_apart
from vettance.demo.launch import command, launched, make_fresh
from vettance.watchlists.entity import Entity, EntityType, ListedName, NameQuality
from vettance.watchlists.index import Index
from vettance.watchlists.index_build import build_index
from vettance.watchlists.labelled import read_cases, subject_of
from vettance.watchlists.list_store import shelf_of
from vettance.watchlists.match import Subject
from vettance.watchlists.subject_screening import screen

_SYLLABLES = [a + b + c for a in ("", "b", "k", "m", "r", "s") for b in "aeio" for c in ("", "n", "r")]
SWAP_EVERY_S = 3.0  # Lists change once a day; what is seen here is the swap, and not the start of programs.
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
        if number == warm:
            # As the service does once it is warm.
            gc.collect()
            gc.freeze()
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


def spent_ms(pid: int) -> dict[str, float]:
    """Return the processor time of a process and of each kind of its children so far, by module."""
    found: dict[str, float] = {}
    children = [
        int(one) for file in Path(f"/proc/{pid}/task").glob("*/children") for one in file.read_text().split()
    ]
    for one in (pid, *children):
        words = Path(f"/proc/{one}/cmdline").read_text().split("\0")
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        kind = next((word for word in words if word.startswith("vettance.")), "other")
        found[kind] = found.get(kind, 0.0) + 1000 * ticks / os.sysconf("SC_CLK_TCK")
    return found


def measure_spending(pid: int, *asked: Any) -> Result:
    """Measure as `measure_apart` does, and print what each kind of process spent on a screening."""
    before = spent_ms(pid)
    result = measure_apart(*asked)
    after = spent_ms(pid)
    count = max(1, result.requests)
    said = ", ".join(f"{kind} {(after[kind] - before.get(kind, 0)) / count:.2f} ms" for kind in after)
    print(f"{asked[3]:>3} connections  {result.line()}, slowest {result.max_ms:.0f} ms", flush=True)
    print(f"     processor time for one: {said}", flush=True)
    return result


def bodies_of(subjects: list[Subject], start: int) -> bytes:
    """Return requests for these subjects, each of a customer of its own."""
    lines = []
    for number, subject in enumerate(subjects, start):
        body = {"inputName": subject.name, "externalId": f"customer-{number}"}
        if subject.type is not None and subject.type is not EntityType.UNKNOWN:
            body["entityType"] = subject.type.value
        if subject.birth is not None and len(subject.birth.first) == 10:
            body["inputDob"] = subject.birth.first
        lines.append(json.dumps(body).encode())
    return b"\n".join(lines)


def import_own(data: Path, folder: Path, number: int) -> None:
    """Import one of the versions of a small list into the data of a running service."""
    path = folder / "swapped.csv"
    path.write_text(f"id,name,remarks\n1,Rosalind Achterberg,{number}\n2,Quillon Vandermeersch,{number}\n")
    arguments = ("watchlist", "import", "--source", "csv", str(path), "--accept-smaller", "--data", str(data))
    subprocess.run([sys.executable, "-m", "vettance.cli", *arguments], check=True, stdout=subprocess.DEVNULL)


def measure_http(data: Path, subjects: list[Subject], seconds: float) -> None:
    """Print screenings a second over HTTP, the same while the index is swapped, and screening again."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        make_fresh(folder)
        shutil.copytree(shelf_of(data), folder / "watchlists")
        with sqlite3.connect(data / "vettance.db") as store:
            lists = [
                store.execute(f"SELECT * FROM {table}").fetchall()
                for table in ("watchlist_version", "watchlist_index")
            ]
        command(folder, "tenant", "create", "Makes the store")
        with sqlite3.connect(folder / "vettance.db") as store:
            for table, rows in zip(("watchlist_version", "watchlist_index"), lists, strict=True):
                marks = ", ".join("?" * len(rows[0]))
                store.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        with launched(folder) as service:
            command(folder, "tenant", "set", service.tenant_id, "--aml", "on")
            # Two versions, so that later imports find their index built and do nothing but swap.
            for number in (0, 1):
                import_own(folder, Path(scratch), number)
            time.sleep(5)
            file = Path(scratch) / "bodies.ndjson"
            url = f"{service.target.base_url}/api/v1/aml/screen"
            key = [f"x-api-key: {service.target.api_key}"]
            sent = 0
            for connections in (1, 8, 32, 8):
                file.write_bytes(bodies_of(subjects, sent))
                sent += len(subjects)
                measure_spending(service.process.pid, url, file, key, connections, seconds)
            stop = threading.Event()

            def swap() -> None:
                number = 0
                while not stop.is_set():
                    import_own(folder, Path(scratch), number % 2)
                    number += 1
                    stop.wait(SWAP_EVERY_S)
                print(f"  {number} imports, each swapping the index")

            swapping = threading.Thread(target=swap)
            swapping.start()
            result = measure_apart(url, file, key, 8, 3 * seconds, None)
            stop.set()
            swapping.join()
            print(f"  8, swapping    {result.line()}, slowest {result.max_ms:.0f} ms", flush=True)
            before_s = time.monotonic()
            import_own(folder, Path(scratch), 9_999)
            lists_path = "/api/v1/aml/watchlists"
            while not ((again := ask(service.target, lists_path)["rescreening"]) and again["finished"]):
                time.sleep(0.2)
            print(f"screened again: {again}, {time.monotonic() - before_s:.1f} s after the import began")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--names", type=int, default=0)
    parser.add_argument("--cases", type=Path, nargs="*", default=[])
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    if options.http and options.data is None:
        parser.error("--http copies the lists of a data folder: name it with --data")
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
        if options.http:
            measure_http(options.data, subjects, options.seconds)
            return
        found |= measure(index, subjects, len(subjects) // 10)
        found["memoryMb"] = memory_mb()
        if options.data is not None:
            found |= rebuild(index)
    print(json.dumps(msgspec.to_builtins(found), indent=2))
