"""Gathers simultaneous writes into batches: while one is being committed, the next one fills up."""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from vettance.db.engine import ANSWER_S_MAX, Clash, Lost, Misuse, Statement, StoreDown
from vettance.db.tables import RowInsert
from vettance.db.writer_channel import Channel
from vettance.telemetry.meters import Meters

# What may wait: enough for any burst that can still be answered in time, and no more memory than this.
WAITING_MAX = 10_000
WAITING_BYTES_MAX = 64 * 1024 * 1024
# A batch is bounded so that its commit stays short and no caller waits for many others.
BATCH_WRITES_MAX = 1_000
# One batch is being committed while the next one already waits in the writer's socket.
BATCHES_SENT_MAX = 2
BATCH_BYTES_MAX = 8 * 1024 * 1024
DRAIN_S_MAX = 20.0
TICK_S = 0.25
_TICKS_MAX = int(ANSWER_S_MAX / TICK_S)
# Writes whose text is made up as they go are sent whole, so that they do not fill the writer's memory.
_SHAPES_MAX = 500
_SHAPE_STATEMENTS_MAX = 8

_OVERLOADED = "the store is overloaded"
_STARTING = "the writer is not running"
_CLOSED = "the store is closed"
_SLOW = f"the store did not answer within {ANSWER_S_MAX:g} s"
_FAILURES: dict[str, type[Exception]] = {"clash": Clash, "lost": Lost, "down": StoreDown, "wrong": Misuse}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

Shape = tuple[tuple[str, int | None], ...]
# A shape as the writer gets it: of an insert of given rows the text of one, its table, and how many arguments
# make a row.
ShapeFrame = tuple[tuple[str, int | None, str | None, int], ...]


class _QueuedWrite(NamedTuple):
    """A write that was not sent yet."""

    caller: asyncio.Future[list[int]]
    write: bytes
    tick: int


class _SentBatch(NamedTuple):
    """Writes that were sent together and not answered yet."""

    callers: list[asyncio.Future[list[int]]]
    tick: int
    sent_ns: int


class WriteBatcher:
    """Sends frames of writes. Everything happens on the event loop; one timer serves all time-outs."""

    def __init__(self, meters: Meters | None = None) -> None:
        self._meters = meters or Meters()
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_QueuedWrite] = deque()
        self._waiting_bytes = 0
        self._sent: deque[_SentBatch] = deque()
        self._shapes: dict[Shape, int] = {}
        #: Shapes as the writer gets them, and their numbers: inserts of any number of rows have the same.
        self._shape_frames: dict[ShapeFrame, int] = {}
        self._shapes_sent = 0
        self._ready = False
        self._scheduled = False
        self._refusal: str | None = _STARTING
        self._tick = 0
        self._timer: asyncio.TimerHandle | None = None
        self.trouble: str | None = None

    async def start(self, channel: Channel) -> None:
        """Bring the writer up. Raises `StoreDown` when that fails."""
        self._channel = channel
        await channel.start()
        self._timer = self._loop.call_later(TICK_S, self._on_tick)

    @property
    def pending(self) -> int:
        """How many writes wait for their commit."""
        return len(self._waiting) + sum(len(batch.callers) for batch in self._sent)

    async def write(self, statements: Sequence[Statement]) -> list[int]:
        """Queue a write and wait until it is on the disk. Its place in the order is that of the call."""
        if not statements:
            return []
        if self._refusal is not None:
            raise StoreDown(self._refusal)
        if len(self._waiting) >= WAITING_MAX or self._waiting_bytes >= WAITING_BYTES_MAX:
            raise StoreDown(_OVERLOADED)
        shape = tuple([statement[0:3:2] for statement in statements])
        name = self._shapes.get(shape)
        try:
            first = self._introduce(shape, statements) if name is None else name
            write = _encode([first, *[s[1] for s in statements]])
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Misuse(f"an argument cannot be stored: {error}") from None
        caller: asyncio.Future[list[int]] = self._loop.create_future()
        self._waiting.append(_QueuedWrite(caller, write, self._tick))
        self._waiting_bytes += len(write)
        if len(self._sent) < BATCHES_SENT_MAX and not self._scheduled:
            # At the end of this turn of the loop, so that writes of the same turn share a batch.
            self._scheduled = True
            self._loop.call_soon(self._flush)
        try:
            return await caller
        finally:
            del caller  # An exception that is raised here would hold it, and it the exception.

    async def close(self) -> None:
        """Refuse new writes, finish those that wait, and end the writer."""
        self._refusal = _CLOSED
        give_up_at = self._loop.time() + DRAIN_S_MAX
        while self._loop.time() < give_up_at:
            undone = [caller for caller in self._callers() if not caller.done()]
            if not undone:
                break
            await asyncio.wait(undone, timeout=TICK_S)
        if self._timer is not None:
            self._timer.cancel()
        self._fail_all(_CLOSED)
        await self._channel.close()

    def replied(self, reply: bytes) -> None:
        """Wake the callers of the batch that was answered, and send the next one."""
        if not self._sent:
            return  # Closing did not wait for it: all its callers were cancelled, or time was up.
        batch = self._sent.popleft()
        callers = batch.callers
        answers = _decode(reply)
        down = None
        for caller, answer in zip(callers, answers, strict=False):
            failed = type(answer[0]) is str
            if failed and answer[0] == "down":
                down = answer[1]
            if caller.done():
                continue
            if failed:
                caller.set_exception(_FAILURES[answer[0]](answer[1]))
            else:
                caller.set_result(answer)
        if not callers and answers:
            down = answers[0][1]
        self.trouble = down
        if down is not None:
            self._meters.store_failed()
        elif callers:
            self._meters.committed(len(callers), time.perf_counter_ns() - batch.sent_ns)
        self._flush()

    def lost(self, reason: str, *, refuse: bool) -> None:
        """Fail everything that waits; with `refuse`, also what comes until the writer is back."""
        self._ready = False
        self.trouble = reason
        self._meters.store_failed()
        if refuse and self._refusal is not _CLOSED:
            self._refusal = reason
        self._fail_all(reason)

    def ready(self) -> None:
        """Go on with a writer that has seen nothing yet."""
        self._ready = True
        self.trouble = None
        if self._refusal is not _CLOSED:
            self._refusal = None
        self._shapes_sent = 0
        self._flush()

    def _introduce(self, shape: Shape, statements: Sequence[Statement]) -> int | ShapeFrame:
        frame = tuple([frame_of(statement) for statement in statements])
        number = self._shape_frames.get(frame)
        if number is None:
            if len(self._shape_frames) >= _SHAPES_MAX or len(shape) > _SHAPE_STATEMENTS_MAX:
                return frame
            number = self._shape_frames[frame] = len(self._shape_frames)
        is_each_one_row = all(text == part[0] for (text, _), part in zip(shape, frame, strict=True))
        if is_each_one_row and len(self._shapes) < _SHAPES_MAX:
            self._shapes[shape] = number
        return number

    def _flush(self) -> None:
        self._scheduled = False
        if len(self._sent) >= BATCHES_SENT_MAX or not self._ready:
            return
        callers: list[asyncio.Future[list[int]]] = []
        writes: list[msgspec.Raw] = []
        size = 0
        while self._waiting and len(writes) < BATCH_WRITES_MAX and size < BATCH_BYTES_MAX:
            caller, write, _ = self._waiting.popleft()
            self._waiting_bytes -= len(write)
            # A caller that was cancelled before its write was sent wants nothing any more.
            if not caller.done():
                callers.append(caller)
                writes.append(msgspec.Raw(write))
                size += len(write)
        if callers:
            self._send(callers, writes)

    def _send(self, callers: list[asyncio.Future[list[int]]], writes: list[msgspec.Raw]) -> None:
        self._sent.append(_SentBatch(callers, self._tick, time.perf_counter_ns()))
        first = self._shapes_sent
        unsent = list(itertools.islice(self._shape_frames, first, None))
        self._shapes_sent = len(self._shape_frames)
        self._channel.send(_encode((first, unsent, writes)))

    def _fail_all(self, reason: str) -> None:
        callers = self._callers()
        self._sent.clear()
        self._waiting.clear()
        self._waiting_bytes = 0
        for caller in callers:
            if not caller.done():
                caller.set_exception(StoreDown(reason))

    def _callers(self) -> list[asyncio.Future[list[int]]]:
        sent = [caller for batch in self._sent for caller in batch.callers]
        return sent + [waiting.caller for waiting in self._waiting]

    def _on_tick(self) -> None:
        self._tick += 1
        self._timer = self._loop.call_later(TICK_S, self._on_tick)
        if self._sent:
            if self._tick - self._sent[0].tick > _TICKS_MAX:
                self._channel.abort(_SLOW)
        elif self._ready and self.trouble is not None:
            # There may be no writes because the store reports trouble: probe it.
            self._send([], [])
        while self._waiting and self._tick - self._waiting[0].tick > _TICKS_MAX:
            caller, write, _ = self._waiting.popleft()
            self._waiting_bytes -= len(write)
            if not caller.done():
                caller.set_exception(StoreDown(_SLOW))


def frame_of(statement: Statement) -> tuple[str, int | None, str | None, int]:
    """Return the part of a shape for one statement, as the writer gets it."""
    into = statement.tables
    if isinstance(into, RowInsert):
        return into.text, statement.rows, into.table if into.certain else None, into.width
    return statement.sql, statement.rows, None, 0
