"""A client on a raw socket: it sends exactly the bytes it is told to, which ordinary clients refuse to do."""

import json
import socket
import time
from typing import Any, NamedTuple


class Answered(NamedTuple):
    """One parsed response."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> dict[str, Any]:
        """The error member, after checking that it has its whole and only shape."""
        body = self.json
        assert list(body) == ["error"]
        assert list(body["error"]) == ["code", "message", "details"]
        assert self.headers["content-type"] == "application/json"
        return body["error"]


class RawClient:
    """One connection to 127.0.0.1."""

    def __init__(self, port: int, api_key: str | None = None) -> None:
        self.port = port
        self.api_key = api_key
        self.socket: socket.socket | None = None
        self.pending = b""

    def connect(self) -> None:
        self.close()
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.pending = b""

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def send(self, data: bytes) -> None:
        if self.socket is None:
            self.connect()
        self.socket.sendall(data)

    def head(
        self, method: str, target: str | bytes, headers: list[tuple[str, str | bytes]], *, with_key: bool
    ) -> bytes:
        raw = target.encode("latin-1") if isinstance(target, str) else target
        lines = [method.encode() + b" " + raw + b" HTTP/1.1", b"host: test"]
        if with_key and self.api_key is not None:
            lines.append(b"x-api-key: " + self.api_key.encode())
        for name, value in headers:
            lines.append(name.encode() + b": " + (value.encode() if isinstance(value, str) else value))
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def ask(
        self,
        method: str,
        target: str | bytes,
        body: Any = None,
        *,
        headers: list[tuple[str, str | bytes]] | None = None,
        with_key: bool = True,
    ) -> Answered:
        """Send one request; a body that is not bytes goes out as JSON. The connection is kept."""
        extra = list(headers or [])
        raw = b""
        if body is not None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            if not any(name.lower() == "content-type" for name, _ in extra):
                extra.append(("content-type", "application/json"))
            extra.append(("content-length", str(len(raw))))
        self.send(self.head(method, target, extra, with_key=with_key) + raw)
        return self.read(no_body=method == "HEAD")

    def read(self, *, no_body: bool = False) -> Answered:
        """Read one response."""
        head = self._until(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name == name.lower()
            assert name not in headers, f"{name} stands twice"
            headers[name] = value
        status = int(status_line.split(" ")[1])
        length = 0 if no_body or status == 304 else int(headers["content-length"])
        while len(self.pending) < length:
            self._more()
        content, self.pending = self.pending[:length], self.pending[length:]
        if headers.get("connection") == "close":
            self.close()
        return Answered(status, headers, content)

    def is_closed(self) -> bool:
        """Tell whether the other side has ended the connection; waits for it for two seconds."""
        if self.socket is None:
            return True
        self.socket.settimeout(2)
        try:
            closed = self.socket.recv(1) == b""
        except ConnectionError:
            closed = True
        except TimeoutError:
            return False
        self.close()
        return closed

    def is_silent(self) -> bool:
        """Tell whether nothing was answered within half a second."""
        self.socket.settimeout(0.5)
        try:
            self.pending += self.socket.recv(65536)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(20)
        return False

    def send_until_closed(self, piece: bytes, pause_s: float, pieces_max: int) -> int:
        """Send a piece again and again until the other side ends the connection; return how many went out."""
        for count in range(pieces_max):
            try:
                self.send(piece)
            except ConnectionError:
                self.close()
                return count
            time.sleep(pause_s)
        raise AssertionError("the other side took everything")

    def _until(self, mark: bytes) -> bytes:
        while mark not in self.pending:
            self._more()
        found, _, self.pending = self.pending.partition(mark)
        return found

    def _more(self) -> None:
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError("the server closed the connection before its answer was complete")
        self.pending += received
