"""The process that searches for the one that answers: many subjects, without a share in its interpreter.

    python -m vettance.watchlists.worker NICENESS LEAST BASE search FOLDER…
    python -m vettance.watchlists.worker NICENESS LEAST BASE changes DATA TENANT OLD NEW
    python -m vettance.watchlists.worker NICENESS LEAST -    answer SOCKET

The first two read subjects from their standard input and write what they may be to their standard output,
until the input ends, which it does when the other process dies. A message (`asking.py`) is a list of
subjects, and for each of them a list of the matches that score `LEAST` or more, or nothing when it could not
be searched. `search` searches the indexes in the
folders; `changes` an index of what is new between two sets of list versions (JSON objects), which it builds
first. The first message tells how many entities are searched. `BASE` is the index whose word counts matter
(`-`: each its own).

`answer` answers one `SearchCall` after the other over the socket that it inherits: the matches,
or in a word why there are none. An empty message says that it is ready.
"""

import gc
import signal
import socket
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from vettance.processes.background import be_nicer
from vettance.watchlists.index import Index, IndexFault
from vettance.watchlists.match import EntityMatch, Subject
from vettance.watchlists.search_protocol import FAILED, INDEX_GONE, LATE, LENGTH_BYTES, SearchCall, framed
from vettance.watchlists.tenant_index import Reach

#: An index keeps the words that it has met: those of lists that were replaced are let go.
_BASES_MAX, _OWN_MAX = 3, 64


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    niceness, least, base, task, *rest = arguments
    be_nicer(int(niceness))
    # Ctrl-C goes to the whole group; who started this process decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    counted = Index(Path(base)) if base != "-" else None
    if task == "answer":
        _SearchServer(int(least)).run(int(rest[0]))
        return
    if task == "changes":
        from vettance.watchlists.delta_index import index_of_changes  # It brings all readers of lists.

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
    while len(head := asked.read(LENGTH_BYTES)) == LENGTH_BYTES:
        subjects = decoder.decode(asked.read(int.from_bytes(head)))
        _say([_search(reach, subject, least) for subject in subjects])


def _say(message: Any) -> None:
    sys.stdout.buffer.write(framed(msgspec.msgpack.encode(message)))
    sys.stdout.buffer.flush()


def _search(reach: Reach, subject: Subject, least: int) -> list[EntityMatch] | None:
    try:
        return [match for match in reach.search(subject) if match.score >= least]
    except Exception:  # noqa: BLE001 - one subject that cannot be searched must not keep all others waiting
        traceback.print_exc()
        return None


class _SearchTimeout(Exception):
    """The time of a search is up."""


class _SearchServer:
    """Answers searches one after the other, with the indexes that they name."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._opened: OrderedDict[str, tuple[Index, OrderedDict[str, Index]]] = OrderedDict()
        self._searching = False

    def run(self, descriptor: int) -> None:
        """Answer until the other end of the socket is closed."""
        signal.signal(signal.SIGALRM, self._on_alarm)
        decode = msgspec.msgpack.Decoder(SearchCall).decode
        encode = msgspec.msgpack.Encoder().encode
        _keep_still()
        try:
            with socket.socket(fileno=descriptor) as link, link.makefile("rb") as asked:
                answer = b""
                while True:
                    link.sendall(framed(answer))
                    length = int.from_bytes(asked.read(LENGTH_BYTES))
                    body = asked.read(length)
                    if not length or len(body) < length:
                        return
                    answer = encode(self._answer(decode(body)))
        except ConnectionError:
            return  # The caller is gone.

    def _answer(self, asking: SearchCall) -> list[EntityMatch] | str:
        try:
            left_s = asking.deadline - time.monotonic()
            if left_s <= 0:
                return LATE
            self._searching = True
            signal.setitimer(signal.ITIMER_REAL, left_s)
            try:
                found = self._reach(asking.folders).search(asking.subject)
                return [match for match in found if match.score >= self._least]
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                self._searching = False
        except _SearchTimeout:
            return LATE
        except IndexFault:
            return INDEX_GONE
        except Exception:  # noqa: BLE001 - one subject that cannot be searched must not end the process
            traceback.print_exc()
            return FAILED

    def _on_alarm(self, _number: int, _frame: object) -> None:
        if self._searching:
            raise _SearchTimeout

    def _reach(self, folders: Sequence[str]) -> Reach:
        first, *others = folders
        known = self._opened.get(first)
        if known is None:
            known = self._opened[first] = Index(Path(first)), OrderedDict()
            while len(self._opened) > _BASES_MAX:
                self._opened.popitem(last=False)
            # What is remembered of the index before is let go by counting; looking for cycles in all of it
            # would keep a search waiting for a tenth of a second.
            gc.freeze()
        base, own = known
        for folder in others:
            if folder not in own:
                own[folder] = Index(Path(folder), base)
                while len(own) > _OWN_MAX:
                    own.popitem(last=False)
        return Reach([base, *(own[folder] for folder in others)])


def _keep_still() -> None:
    """Have the collector of garbage leave alone what stays, and come seldom for the rest."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


if __name__ == "__main__":
    main(sys.argv[1:])
