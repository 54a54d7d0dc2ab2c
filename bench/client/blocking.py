"""One kept connection that waits for each answer, for callers that are threads or ask one thing at a time."""

import contextlib
import json
import socket
from typing import Any

from vettance.demo.demo_client import DemoTarget, HttpAnswer, read_answer, request

ANSWER_S_MAX = 20.0
_READ_BYTES = 1 << 16


class Caller:
    """Asks one thing after the other; opens the connection again when the service closed it."""

    def __init__(self, host: str, port: int, timeout_s: float = ANSWER_S_MAX) -> None:
        self._address = (host, port)
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None

    def ask(self, content: bytes) -> HttpAnswer:
        """Send a whole request and return its answer. Raises `OSError` when there is none."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.sendall(content)
            answer = self._receive(self._socket)
        except OSError:
            self.close()
            raise
        except ValueError as error:
            self.close()
            raise ConnectionError(f"the service answered what is not HTTP: {error}") from None
        if b"connection: close" in answer.head.lower():
            self.close()
        return answer

    def _receive(self, line: socket.socket) -> HttpAnswer:
        received = b""
        while (answer := read_answer(received)) is None:
            more = line.recv(_READ_BYTES)
            if not more:
                raise ConnectionError("the service closed the connection")
            received += more
        return answer

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def ask_once(host: str, port: int, content: bytes) -> HttpAnswer:
    """Send one request over a connection of its own. Raises `OSError` when there is no answer."""
    with contextlib.closing(Caller(host, port)) as caller:
        return caller.ask(content)


def ask(to: DemoTarget, path: str, body: bytes | None = None) -> Any:
    """Ask with the target's key (POST where there is a body) and return the JSON of the answer."""
    sent = request("GET" if body is None else "POST", path, to.api_key, body)
    answer = ask_once(to.host, to.port, sent)
    if answer.status // 100 != 2:
        raise SystemExit(f"{path} was answered {answer.status}: {answer.body.decode()}")
    return json.loads(answer.body)
