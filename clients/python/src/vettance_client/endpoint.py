"""An endpoint as the client knows it."""

import enum
import functools
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

Reply = TypeVar("Reply")


class Repeat(enum.Enum):
    """Whether a request may be sent again when it is not known what became of it."""

    ALWAYS = "always"
    WITH_KEY = "with_key"  # the `Idempotency-Key` sees to it that it has one effect
    NEVER = "never"


@dataclass(frozen=True, eq=False)
class Endpoint(Generic[Reply]):
    """A row of the table of endpoints. `answer` is the type of the answer; None for any JSON object."""

    name: str
    method: str
    path: str
    answer: type[Reply] | None
    repeat: Repeat

    @functools.cached_property
    def decoder(self) -> msgspec.json.Decoder[Reply]:
        """What reads the answer; it is made when it is needed for the first time."""
        kind: Any = dict[str, Any] if self.answer is None else self.answer
        return msgspec.json.Decoder(kind)
