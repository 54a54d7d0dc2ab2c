"""Logs: one JSON object a line on standard error, without personal data.

What is logged is chosen word by word where it happens: names of events, ids of ours, counts. What cannot be
chosen are texts of others: an exception of a library may repeat what a caller sent, and so may a message that
a library logs. Of those, only what is in source code is written: the type of the exception, the places it
came through, the message before anything was put into it.
"""

import logging
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

#: Frames of a traceback, the innermost of it; more would be a recursion.
_FRAMES_MAX: Final = 40
#: Exceptions behind an exception.
_CAUSES_MAX: Final = 5
_OURS: Final = "vettance."


class _Logger:
    """A logger of structlog, loaded with its first line: most commands never log, and loading takes long."""

    def __init__(self) -> None:
        self._logger: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._logger is None:
            import structlog

            self._logger = structlog.get_logger()
        return getattr(self._logger, name)


def logger() -> Any:
    """Return a logger that takes an event's name and its values: `logger().info("started", port=8080)`."""
    return _Logger()


def logs_are_configured() -> bool:
    """Tell whether log lines go to standard error; of commands, only their output does."""
    import structlog

    return structlog.is_configured()


def configure_logs(level: str) -> None:
    """Send every log line to standard error as JSON, also those of libraries and of what nobody has caught.

    `level` is debug, info, warning or error; of libraries, warnings and errors are written.
    """
    import structlog

    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_texts,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[_Libraries()], force=True)
    sys.excepthook = _log_end
    threading.excepthook = _log_thread


def _without_texts(_logger: "WrappedLogger", _method: str, line: "EventDict") -> "EventDict":
    """Put an exception into a line: what it is and where it came from."""
    told = line.pop("exc_info", None)
    error = told if isinstance(told, BaseException) else sys.exc_info()[1] if told is True else None
    if isinstance(told, tuple):
        error = told[1]
    if error is not None:
        line["exception"] = exceptions(error)
    return line


def exceptions(error: BaseException) -> list[dict[str, Any]]:
    """Tell of an exception and of those behind it: type, places, and the text of those that are ours."""
    told: list[dict[str, Any]] = []
    behind: BaseException | None = error
    while behind is not None and len(told) < _CAUSES_MAX:
        kind = type(behind)
        one: dict[str, Any] = {"type": f"{kind.__module__}.{kind.__qualname__}"}
        if kind.__module__.startswith(_OURS):
            # Our own sentences never repeat what a caller sent.
            one["text"] = str(behind)
        elif isinstance(behind, OSError) and behind.strerror:
            one["text"] = behind.strerror
        one["places"] = _places(behind.__traceback__)
        told.append(one)
        behind = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
    return told


def _places(traceback: TracebackType | None) -> list[str]:
    places: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append(f"{code.co_filename}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return places[-_FRAMES_MAX:]


class _Libraries(logging.Handler):
    """Writes what libraries log: the first line of the message, before anything was put into it.

    asyncio puts the text of an exception into the lines that follow.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        message = str(record.msg).partition("\n")[0] if isinstance(record.msg, str) else ""
        log = logger()
        log.log(record.levelno, message, logger=record.name, exc_info=record.exc_info)


def _log_end(kind: type[BaseException], error: BaseException, _traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        logger().critical("process_failed", exc_info=error)


def _log_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None and not isinstance(told.exc_value, SystemExit):
        logger().error("thread_failed", exc_info=told.exc_value)
