"""What is said to a child process on its standard input."""

import asyncio


def tell(process: asyncio.subprocess.Process, message: bytes) -> None:
    """Say something to a child. Raises `BrokenPipeError` when it is known to have ended: uvloop raises a
    `RuntimeError` where asyncio keeps silent."""
    assert process.stdin is not None
    if process.stdin.is_closing():
        raise BrokenPipeError
    process.stdin.write(message)
