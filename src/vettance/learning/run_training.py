"""Runs one training in a process of its own, and says when one is due."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Final

import msgspec

from vettance.clock import DAY_MS
from vettance.processes.background import in_background
from vettance.processes.standard_input import tell
from vettance.wire.payload import JSON, encode

#: Labels of fraud, or confirmed alerts, from which on a model is trained.
LABELS_MIN: Final = 50
#: A model is trained again after so many further ones, or that share of them, or a day.
MORE_MIN: Final = 25
MORE_SHARE: Final = 0.1
_TRAINING_S_MAX: Final = 1_800.0
_LINE_BYTES_MAX: Final = 64 * 1024 * 1024


def is_due(count: int, trained: int, trained_at_ms: int, now_ms: int) -> bool:
    """Tell whether a model is to be trained; `trained` is how many labels there were the last time."""
    if count < LABELS_MIN:
        return False
    more = count - trained
    is_old = now_ms - trained_at_ms >= DAY_MS
    return more >= max(MORE_MIN, MORE_SHARE * trained) or (is_old and more > 0)


async def run_training(data: Path, order: JSON) -> dict[str, Any]:
    """Do what an order says (`training_process.TrainingOrder`); `error` says why it gave none."""
    process = await asyncio.create_subprocess_exec(
        *in_background("vettance.learning.training_process", str(data)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_BYTES_MAX,
    )
    try:
        async with asyncio.timeout(_TRAINING_S_MAX):
            said = await _ask(process, encode(order))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return said if said is not None else {"error": "The training ended without a result."}


async def _ask(process: asyncio.subprocess.Process, order: bytes) -> dict[str, Any] | None:
    assert process.stdout is not None
    with contextlib.suppress(ConnectionError):
        # It stays open: its end tells the process that this one is gone, even by a kill.
        tell(process, order + b"\n")
    line = await process.stdout.readline()
    if not line.endswith(b"\n"):
        return None
    said = msgspec.json.decode(line)
    return said if isinstance(said, dict) else None
