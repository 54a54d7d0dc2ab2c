"""Takes messages of a stream into the store: each once, with the job that has it decided, in one commit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from vettance import clock
from vettance.db.engine import Clash, Statement, Store
from vettance.ids import IdSource
from vettance.jobs.sql import JobKind, insert_refused, insert_streamed
from vettance.streams import sql
from vettance.streams.stream_message import IdRule, ReadMessage, StreamMessage, other_content, read_message

#: Bodies of one commit: a few milliseconds of the disk.
PIECE_BYTES: Final = 4 * 1024 * 1024
#: How often a commit is tried again because another process took one of its messages at the same moment.
_TRIES: Final = 10


class StreamConsumer(NamedTuple):
    """Who takes messages: the consumer `name` of a tenant, for events of a kind.

    `results_due` says whether what becomes of them is to be sent somewhere.
    """

    tenant: str
    name: str
    kind: JobKind
    rule: IdRule
    results_due: bool


class MessageTaker:
    """Takes messages. The row that names a message and the job that has it decided are one commit, and the
    store refuses a second row of one name: what is delivered again, or to two processes, is one job.
    """

    def __init__(
        self, store: Store, consumer: StreamConsumer, ids: IdSource, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._consumer = consumer
        self._ids = ids
        self._now_ms = now_ms

    async def take(self, messages: Sequence[StreamMessage]) -> sql.StreamCounts:
        """Take messages; when this returns, they are in the store and the broker may forget them.

        Raises `StoreDown`; then what was kept of them is known when they are taken again.
        """
        counts = sql.StreamCounts()
        for piece in _pieces(messages):
            counts = counts.plus(await self._take_piece(piece))
        return counts

    async def _take_piece(self, messages: Sequence[StreamMessage]) -> sql.StreamCounts:
        one, now_ms = self._consumer, self._now_ms()
        read = [read_message(message, one.kind, one.name, one.rule, now_ms) for message in messages]
        for _ in range(_TRIES - 1):
            try:
                return await self._write(read, now_ms)
            except Clash:
                continue  # Another process was faster; its messages are known now.
        return await self._write(read, now_ms)

    async def _write(self, read: Sequence[ReadMessage], now_ms: int) -> sql.StreamCounts:
        one = self._consumer
        known = await self._known([message.key for message in read])
        fresh: dict[bytes, ReadMessage] = {}
        again: list[ReadMessage] = []
        repeated = 0
        for message in read:
            digest = known.get(message.key) or (fresh[message.key].digest if message.key in fresh else None)
            if digest is None:
                fresh[message.key] = message
            elif digest == message.digest:
                repeated += 1
            else:
                again.append(message.refused(other_content()))
        if again:
            known = await self._known([message.key for message in again])
            for message in again:
                repeated += message.key in known or message.key in fresh
                if message.key not in known:
                    fresh[message.key] = message
        refused = sum(message.refusal is not None for message in fresh.values())
        counts = sql.StreamCounts(len(fresh) - refused, repeated, refused)
        statements = [statement for message in fresh.values() for statement in self._rows(message, now_ms)]
        await self._store.write(*statements, sql.count(one.tenant, one.name, one.kind, counts, now_ms))
        return counts

    async def _known(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        rows = await self._store.read(sql.select_taken(self._consumer.tenant, keys))
        return {bytes(key): bytes(digest) for key, digest in rows}

    def _rows(self, message: ReadMessage, now_ms: int) -> Iterator[Statement]:
        one = self._consumer
        job_id = self._ids.make("job", now_ms)
        yield sql.take_message(
            one.tenant, message.key, message.digest, one.name, job_id, now_ms, result_due=one.results_due
        )
        common = one.tenant, job_id, now_ms, message.shown, one.kind, message.sent
        if message.refusal is None:
            yield insert_streamed(*common)
        else:
            yield insert_refused(*common, message.refusal)


def _pieces(messages: Sequence[StreamMessage]) -> Iterator[list[StreamMessage]]:
    piece: list[StreamMessage] = []
    size = 0
    for message in messages:
        piece.append(message)
        size += len(message.body)
        if size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
