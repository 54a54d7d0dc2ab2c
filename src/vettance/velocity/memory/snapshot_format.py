"""Snapshots: a tenant's memory as bytes and back, so that a start reads a file and the newest events only.

A snapshot is a row of frames: 4 bytes of length, 16 bytes of BLAKE2b over the digest before and the payload,
and the payload in MessagePack. The chain of digests shows damage, reordering and a missing end. It guards
against broken disks, not against an attacker who can write the file.
"""

import hashlib
import struct
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from vettance.velocity.fingerprint import is_modulus
from vettance.velocity.memory.key_groups import Busy, GroupKeys
from vettance.velocity.memory.last_seen import LatestValues
from vettance.velocity.memory.running_totals import RunningTotals
from vettance.velocity.memory.series import ROOM_WITH_BUCKETS, ObservedSeries
from vettance.velocity.memory.sub_buckets import SubBuckets
from vettance.velocity.memory.tenant_memory import TenantMemory
from vettance.velocity.plan_layout import SeriesSlot
from vettance.velocity.port import Plan, VelocityAnswer

#: To be raised with any change of what is written below, of packed records, or of the order of lanes.
VERSION: Final = 3
_MAGIC: Final = "vettance velocity"
_FRAME: Final = struct.Struct("<I16s")
_FRAME_BYTES_MAX: Final = 1 << 30
_KEYS_AT_ONCE: Final = 4096
_ANSWERS_AT_ONCE: Final = 2000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class SnapshotRefused(Exception):
    """A snapshot cannot be loaded; the message says why. The memory is then rebuilt from the event log."""


def dump_memory(memory: TenantMemory) -> Iterator[bytes]:
    """Return the frames of a snapshot of this very moment.

    Packed records never change, so keeping hold of them is enough; busy keys are copied before this returns.
    """
    counts = memory.observed, memory.labels
    header = (_MAGIC, VERSION, _encode(memory.layout.plan), memory.modulus, memory.reach_ms, *counts)
    answers = list(memory.recent.items())
    groups = [(_sweep_state(keys), array("q", keys.records), _copy(keys)) for keys in memory.keys]
    return sealed(_frames(header, answers, groups))


def _sweep_state(keys: GroupKeys) -> tuple[Any, ...]:
    return keys.next_sweep_ms, keys.oldest_ms, keys.waiting.tobytes()


def _copy(keys: GroupKeys) -> list[Any]:
    held: list[Any] = list(keys.records.values())
    if keys.busy:
        for place, record in enumerate(held):
            if isinstance(record, list):
                held[place] = [None if series is None else _series_state(series) for series in record]
    return held


def _frames(
    header: tuple[Any, ...],
    answers: list[tuple[str, VelocityAnswer]],
    groups: list[tuple[tuple[Any, ...], "array[int]", list[Any]]],
) -> Iterator[Any]:
    yield header
    for start in range(0, len(answers), _ANSWERS_AT_ONCE):
        # The bits of more than 64 aggregates do not fit the integers of MessagePack.
        some = [
            (event_id, answer.values, f"{answer.inexact:x}")
            for event_id, answer in answers[start : start + _ANSWERS_AT_ONCE]
        ]
        yield "answers", 0, some
    for index, (sweep, fingerprints, held) in enumerate(groups):
        yield "group", index, sweep
        for start in range(0, len(held), _KEYS_AT_ONCE):
            end = start + _KEYS_AT_ONCE
            yield "keys", index, fingerprints[start:end].tobytes(), held[start:end]
    yield "end", sum(len(held) for _, _, held in groups)


def sealed(payloads: Iterable[Any]) -> Iterator[bytes]:
    """Make a chained frame of each payload."""
    digest = b""
    for payload in payloads:
        body = _encode(payload)
        digest = _chain(digest, body)
        yield _FRAME.pack(len(body), digest) + body


def _chain(digest: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, key=digest, digest_size=16).digest()


def _series_state(series: ObservedSeries) -> tuple[Any, ...]:
    latest = series.latest
    return (
        series.left_ms,
        series.moments.tobytes(),
        None if series.values is None else series.values.tobytes(),
        (series.asked_ms, series.stale_ms),
        series.has_buckets,
        [None if run is None else _running_state(run) for run in series.runs],
        None if latest is None else (latest.forgotten_ms, list(latest.of), list(latest.of.values())),
    )


def _running_state(run: RunningTotals) -> tuple[Any, ...]:
    # The bits of more than 64 aggregates do not fit the integers of MessagePack.
    totals = [*run.state(), f"{run.inexact:x}"]
    buckets = run.buckets
    if buckets is None:
        return totals, None
    return totals, (buckets.base, buckets.lost, [list(values) for values, _ in buckets.arrays()])


def load_memory(plan: Plan, chunks: Iterable[bytes]) -> TenantMemory:
    """Read a snapshot, cut into pieces in whatever way. Raises `SnapshotRefused`."""
    payloads = unsealed(chunks)
    try:
        memory = _begin(plan, next(payloads, None))
        for payload in payloads:
            if payload[0] == "end":
                if payload[1] != sum(len(keys.records) for keys in memory.keys) or next(payloads, None):
                    raise SnapshotRefused("The snapshot does not hold what its end says.")
                return memory
            _take(memory, payload)
    except (TypeError, ValueError, IndexError, KeyError) as fault:
        raise SnapshotRefused("The snapshot is not made as this version makes it.") from fault
    raise SnapshotRefused("The snapshot is cut short.")


def unsealed(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Yield the payload of each frame, having checked it; the frames are cut into pieces in whatever way.

    Raises `SnapshotRefused`.
    """
    digest, buffer = b"", bytearray()
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= _FRAME.size:
            length, expected = _FRAME.unpack_from(buffer)
            if length > _FRAME_BYTES_MAX:
                raise SnapshotRefused("The snapshot is damaged.")
            end = _FRAME.size + length
            if len(buffer) < end:
                break
            body = bytes(buffer[_FRAME.size : end])
            del buffer[:end]
            digest = _chain(digest, body)
            if digest != expected:
                raise SnapshotRefused("The snapshot is damaged.")
            yield _decode(body)
    if buffer:
        raise SnapshotRefused("The snapshot is cut short.")


def _begin(plan: Plan, header: Any) -> TenantMemory:
    if header is None:
        raise SnapshotRefused("The snapshot is empty.")
    magic, version, *rest = header
    if magic != _MAGIC or version != VERSION:
        raise SnapshotRefused("The snapshot is of another version.")
    plan_bytes, modulus, reach_ms, observed, labels = rest
    if plan_bytes != _encode(plan):
        raise SnapshotRefused("The snapshot is of another plan.")
    if not is_modulus(modulus):
        raise SnapshotRefused("The snapshot is damaged.")
    memory = TenantMemory(plan, modulus)
    memory.high_ms = memory.reach_ms = reach_ms
    memory.observed, memory.labels = observed, labels
    return memory


def _take(memory: TenantMemory, payload: Any) -> None:
    what, index, *rest = payload
    if what == "answers":
        for event_id, values, inexact in rest[0]:
            memory.recent.keep(event_id, VelocityAnswer(tuple(values), int(inexact, 16)))
        return
    keys = memory.keys[index]
    if what == "group":
        keys.next_sweep_ms, keys.oldest_ms, waiting = rest[0]
        keys.waiting = array("q", waiting)
    elif what == "keys":
        fingerprints, held = rest
        for place, record in enumerate(held):
            if isinstance(record, list):
                held[place] = busy = _make_busy(keys.group.lanes, record)
                keys.busy += 1
                keys.raw += sum(len(series.moments) for series in busy if series is not None)
            else:
                keys.entries += record[0]
                keys.packed_bytes += len(record)
        keys.records.update(zip(array("q", fingerprints), held, strict=True))
    else:
        raise ValueError("an unknown frame")


def _make_busy(lanes: tuple[SeriesSlot, ...], states: list[Any]) -> Busy:
    return [
        None if state is None else _make_series(lane, state)
        for lane, state in zip(lanes, states, strict=True)
    ]


def _make_series(lane: SeriesSlot, state: Any) -> ObservedSeries:
    left_ms, moments, values, until, has_buckets, runs, latest = state
    series = ObservedSeries(lane)
    series.left_ms, series.has_buckets = left_ms, has_buckets
    series.asked_ms, series.stale_ms = until
    series.moments.frombytes(moments)
    if series.moments:
        series.newest_ms = series.moments[-1]
    if series.values is not None:
        series.values.frombytes(values)
    if has_buckets:
        series.room = ROOM_WITH_BUCKETS
    for window, run, known in zip(lane.windows, series.runs, runs, strict=True):
        if run is not None:
            _make_running(run, known, SubBuckets(window, lane.kept_ms) if has_buckets else None)
    if latest is not None:
        forgotten_ms, seen, last = latest
        series.latest = LatestValues()
        series.latest.forgotten_ms = forgotten_ms
        series.latest.of = dict(zip(seen, last, strict=True))
        series.latest.moments = array("q", sorted(last))
    return series


def _make_running(run: RunningTotals, state: Any, buckets: SubBuckets | None) -> None:
    (*totals, inexact), held = state
    run.restore(totals)
    run.inexact = int(inexact, 16)
    run.buckets = buckets
    if buckets is not None:
        buckets.base, buckets.lost, arrays = held
        for (values, _), kept in zip(buckets.arrays(), arrays, strict=True):
            values.extend(kept)
