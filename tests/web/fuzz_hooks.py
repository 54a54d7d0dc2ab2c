"""What the fuzzer is told beyond the document: a repeated `Idempotency-Key` gets the first answer, whatever
the body, so each request gets a key of its own. Keys that the service must refuse stay as they are."""

import itertools
import re
from typing import Any

import schemathesis

_numbers = itertools.count()


@schemathesis.hook
def before_call(_context: Any, case: schemathesis.Case, _kwargs: Any) -> None:
    """Make a valid key unique."""
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch("[ -~]{1,255}", key):
        case.headers["Idempotency-Key"] = f"{key[:200]}#{next(_numbers)}"
