"""A line of the log is JSON, and says nothing that came from outside."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

CANARY = "canary-7f3a@example.com"

PRELUDE = f"""
import asyncio, logging, sys, threading
from vettance.telemetry.logs import configure_logs
from vettance.db.engine import StoreDown
import structlog
configure_logs("debug")
log = structlog.get_logger()
CANARY = "{CANARY}"
"""


def lines_of(program: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(os.environ),
    )
    assert CANARY not in done.stderr
    assert CANARY.partition("@")[0] not in done.stdout
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    return lines


def test_an_exception_is_told_by_its_type_and_places_without_its_text() -> None:
    (line,) = lines_of(
        "def read(text):\n    return int(text)\n"
        "try:\n    read(CANARY)\n"
        "except ValueError:\n    log.exception('request_failed', request_id='req_1')"
    )
    assert line["event"] == "request_failed"
    assert line["request_id"] == "req_1"
    (told,) = line["exception"]
    assert told["type"] == "builtins.ValueError"
    assert "text" not in told
    assert told["places"][-1].endswith(" read")


def test_exceptions_behind_it_are_told_too_and_our_own_sentences_with_them() -> None:
    (line,) = lines_of(
        "try:\n    try:\n        {}[CANARY]\n    except KeyError as error:\n"
        "        raise StoreDown('the disk is full') from error\n"
        "except StoreDown as error:\n    log.error('failed', exc_info=error)"
    )
    assert [one["type"] for one in line["exception"]] == [
        "vettance.db.engine.StoreDown",
        "builtins.KeyError",
    ]
    assert line["exception"][0]["text"] == "the disk is full"


@pytest.mark.parametrize(
    ("program", "event"),
    [
        ("logging.getLogger('some.library').warning('cannot reach %s', CANARY)", "cannot reach %s"),
        (
            "async def fail():\n    raise ValueError(CANARY)\n"
            "async def main():\n    task = asyncio.create_task(fail())\n"
            "    await asyncio.sleep(0)\n    del task\n"
            "asyncio.run(main())",
            "Task exception was never retrieved",
        ),
        ("raise ValueError(CANARY)", "process_failed"),
        (
            "def fail():\n    raise ValueError(CANARY)\n"
            "thread = threading.Thread(target=fail)\nthread.start()\nthread.join()",
            "thread_failed",
        ),
    ],
)
def test_what_libraries_and_the_interpreter_say_is_json_without_texts(program: str, event: str) -> None:
    lines = lines_of(program)
    assert [line["event"] for line in lines] == [event]


def test_libraries_are_not_asked_for_chatter() -> None:
    assert lines_of("logging.getLogger('some.library').info('hello')") == []
