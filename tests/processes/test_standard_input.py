"""Saying something to a child that was killed is told in one way, whatever the event loop does."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from vettance.processes.standard_input import tell


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_is_said_to_a_child_that_has_ended_is_refused(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def whole() -> None:
        process = await asyncio.create_subprocess_exec(
            "cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        tell(process, b"still there\n")
        assert await process.stdout.readline() == b"still there\n"
        process.kill()
        await process.wait()
        with contextlib.suppress(OSError):
            await process.stdin.wait_closed()
        with pytest.raises(BrokenPipeError):
            tell(process, b"gone\n")

    run(whole())
