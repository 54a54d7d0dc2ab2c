"""The process that searches beside the one that answers: many subjects, without a share in its interpreter.

    python -m vettance.watchlists.worker NICENESS LEAST BASE search FOLDER…
    python -m vettance.watchlists.worker NICENESS LEAST BASE changes DATA TENANT OLD NEW

It reads subjects from its standard input and writes what they may be to its standard output, until the input
ends, which it does when the other process dies. A message is its length in four bytes, big end first, and
that many bytes of MessagePack: a list of subjects, and for each of them a list of the matches that score
`LEAST` or more, or nothing when it could not be searched. `search` searches the indexes in the folders;
`changes` an index of what is new between two sets of list versions (JSON objects), which it builds first. The
first message tells how many entities are searched. `BASE` is the index whose word counts matter (`-`: each
its own).
"""

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec

from vettance.watchlists.changes import index_of_changes
from vettance.watchlists.index import Index
from vettance.watchlists.match import Match, Subject
from vettance.watchlists.reach import Reach

_LENGTH_BYTES = 4


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    niceness, least, base, task, *rest = arguments
    os.nice(int(niceness))
    # Ctrl-C goes to the whole group; who started this process decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    counted = Index(Path(base)) if base != "-" else None
    if task == "changes":
        data, tenant, old, new = rest
        versions = [msgspec.json.decode(text, type=dict[str, str]) for text in (old, new)]
        with index_of_changes(Path(data), tenant, versions[0], versions[1], counted) as index:
            _serve([index] if index is not None else [], int(least))
        return
    indexes = [
        counted if counted is not None and str(counted.folder) == folder else Index(Path(folder), counted)
        for folder in rest
    ]
    _serve(indexes, int(least))


def _serve(indexes: list[Index], least: int) -> None:
    reach = Reach(indexes)
    decoder = msgspec.msgpack.Decoder(list[Subject])
    _say(sum(index.entities for index in indexes))
    asked = sys.stdin.buffer
    while len(head := asked.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
        subjects = decoder.decode(asked.read(int.from_bytes(head)))
        _say([_search(reach, subject, least) for subject in subjects])


def _say(message: Any) -> None:
    body = msgspec.msgpack.encode(message)
    sys.stdout.buffer.write(len(body).to_bytes(_LENGTH_BYTES) + body)
    sys.stdout.buffer.flush()


def _search(reach: Reach, subject: Subject, least: int) -> list[Match] | None:
    try:
        return [match for match in reach.search(subject) if match.score >= least]
    except Exception:  # noqa: BLE001 - one subject that cannot be searched must not keep all others waiting
        traceback.print_exc()
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
