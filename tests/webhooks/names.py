"""A name server on a free port of 127.0.0.1 that keeps silent about some names."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_A: Final = 1


class NameServer:
    """Answers with 127.0.0.1 for every name, but for those that begin with `silent` (nothing at all) and with
    `missing` (no such name)."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0)
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        #: How often each name was asked for its IPv4 address.
        self.asked: Counter[str] = Counter()

    def answer(self) -> None:
        """Answer what has come in."""
        while True:
            try:
                question, whose = self.socket.recvfrom(4096)
            except BlockingIOError:
                return
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1 : at + 1 + question[at]].decode().lower())
                at += question[at] + 1
            is_a = int.from_bytes(question[at + 1 : at + 3], "big") == _A
            self.asked[".".join(labels)] += is_a
            if labels[0].startswith("silent"):
                continue
            is_missing = labels[0].startswith("missing")
            # RFC 1035, section 4: header, question, and a record that points back at the name in it.
            record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" if is_a and not is_missing else b""
            flags = b"\x81\x83" if is_missing else b"\x81\x80"
            counts = b"\0\1" + (b"\0\1" if record else b"\0\0") + b"\0\0\0\0"
            self.socket.sendto(question[:2] + flags + counts + question[12 : at + 5] + record, whose)


@contextmanager
def name_server() -> Iterator[NameServer]:
    """Run a name server on the running loop until the block ends."""
    server = NameServer()
    asyncio.get_running_loop().add_reader(server.socket, server.answer)
    try:
        yield server
    finally:
        asyncio.get_running_loop().remove_reader(server.socket)
        server.socket.close()
