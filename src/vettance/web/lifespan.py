"""Lifespan: a process's own start and stop, around its life, as the ASGI lifespan protocol asks."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from vettance.web.asgi import Message
from vettance.web.request_body import Receive

#: Starts the process's own work, and ends it.
Lifespan = Callable[[], AbstractAsyncContextManager[None]]
Send = Callable[[Message], Awaitable[None]]
LogError = Callable[[str, BaseException], None]


async def live(lifespan: Lifespan | None, receive: Receive, send: Send, log_error: LogError) -> None:
    """Run it while the server lives."""
    await receive()
    if lifespan is None:
        await send({"type": "lifespan.startup.complete"})
        await receive()
    else:
        started = False
        try:
            async with lifespan():
                started = True
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as error:  # noqa: BLE001  The server receives it, and decides what to do.
            log_error("lifespan", error)
            kind = "shutdown" if started else "startup"
            await send({"type": f"lifespan.{kind}.failed", "message": type(error).__name__})
            return
    await send({"type": "lifespan.shutdown.complete"})
