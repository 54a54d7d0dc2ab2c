"""Logs: one JSON object a line on standard error, without personal data."""

import logging
import sys

import structlog
from structlog.tracebacks import ExceptionDictTransformer


def configure_logs(level: str) -> None:
    """Send every log line to standard error as JSON. `level` is debug, info, warning or error."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(threshold, logging.WARNING), stream=sys.stderr, format="%(message)s")
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Local variables hold keys and customers' data, so tracebacks are written without them.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
