"""The types that ASGI and answers are made of."""

from collections.abc import AsyncGenerator, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]

Header = tuple[bytes, bytes]


#: Makes the pieces of an answer, from its beginning.
Pieces = Callable[[], AsyncGenerator[bytes, None]]
