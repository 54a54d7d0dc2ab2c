"""What a connection may do before there is a request: bytes that are no HTTP, endless heads, silence."""

import gc
import time

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving
from vettance.web.server import HEAD_BYTES_MAX, EdgeProtocol


class ImpatientProtocol(EdgeProtocol):
    look_every_s = 0.15


@pytest.fixture(scope="module")
def impatient():
    notebook = Notebook()
    with serving(notebook.edge, http=ImpatientProtocol) as port:
        yield notebook, port


def closed_after_s(client: RawClient) -> float:
    start = time.monotonic()
    assert client.is_closed()
    return time.monotonic() - start


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_http_is_answered_with_the_error_body(port, sent):
    client = RawClient(port)
    client.send(sent)
    answer = client.read()
    assert answer.status == 400
    assert answer.error["code"] == "VALIDATION_ERROR"
    assert answer.headers["x-request-id"].startswith("req_")
    assert client.is_closed()


def test_blanks_around_a_value_of_a_header_are_no_part_of_it(impatient):
    notebook, port = impatient
    client = RawClient(port)
    key = f" \t{notebook.new_key()} \t "
    headers = [("x-api-key", key), ("content-type", "application/json \t"), ("x-request-id", "abc  ")]
    body = b'{"text": "kept"}'
    headers.append(("content-length", f"{len(body)} "))
    client.send(client.head("POST", "/api/v1/notes", headers, with_key=False) + body)
    answer = client.read()
    assert (answer.status, answer.headers["x-request-id"]) == (201, "abc")
    client.close()


def test_an_endless_head_is_cut_off(port):
    client = RawClient(port)
    client.send(b"GET /healthz HTTP/1.1\r\n")
    piece = b"x: " + b"y" * 995 + b"\r\n"
    assert HEAD_BYTES_MAX // 1000 <= client.send_until_closed(piece, 0.001, 500) < 500


LONG_TARGET = b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n"
STRANGE_TARGET = b"BREW /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n"
ASKING_MORE = (
    b"POST /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
)


@pytest.mark.parametrize("sent", [LONG_TARGET, STRANGE_TARGET, ASKING_MORE])
def test_a_target_that_is_too_long_is_refused_with_its_bound(port, sent):
    client = RawClient(port)
    client.send(sent)
    said = client.read()
    assert said.status == 414
    assert said.error["code"] == "VALIDATION_ERROR"
    assert "target" in said.error["message"]
    assert "65,535 bytes" in said.error["message"]


def test_a_target_that_is_too_long_is_named_before_it_has_ended(port):
    client = RawClient(port)
    client.send(b"GET /")
    for _ in range(HEAD_BYTES_MAX // 1000 + 1):
        client.send(b"a" * 1000)
        time.sleep(0.001)
    answer = client.read()
    assert answer.status == 414
    assert "target" in answer.error["message"]
    assert f"{HEAD_BYTES_MAX:,} bytes" in answer.error["message"]


def test_headers_that_are_too_long_are_refused_with_their_bound(port):
    client = RawClient(port)
    client.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
    for _ in range(HEAD_BYTES_MAX // 1000 + 1):
        client.send(b"x: " + b"y" * 995 + b"\r\n")
        time.sleep(0.001)
    answer = client.read()
    assert answer.status == 431
    assert answer.error["code"] == "VALIDATION_ERROR"
    assert "headers of the request" in answer.error["message"]
    assert f"{HEAD_BYTES_MAX:,} bytes" in answer.error["message"]
    assert client.is_closed()


def test_long_heads_within_the_bound_are_taken_however_they_are_cut(port):
    client = RawClient(port)
    raw = client.head("GET", "/healthz", [("cookie", "c" * (HEAD_BYTES_MAX - 2000))], with_key=False)
    for _ in range(3):
        for start in range(0, len(raw), 5000):
            client.send(raw[start : start + 5000])
            time.sleep(0.001)
        assert client.read().status == 200
    client.close()


def test_a_connection_that_sends_nothing_is_closed(impatient):
    client = RawClient(impatient[1])
    client.connect()
    assert 0.1 < closed_after_s(client) < 1.5


def test_a_head_that_drips_is_closed(impatient):
    client = RawClient(impatient[1])
    client.send(b"GET /healthz HTTP/1.1\r\n")
    assert client.send_until_closed(b"x: y\r\n", 0.02, 100) >= 5


def test_the_rest_of_a_refused_body_is_not_waited_for_for_ever(impatient):
    notebook, port = impatient
    client = RawClient(port, notebook.new_key())
    headers = [("content-type", "text/plain"), ("content-length", "50000")]
    client.send(client.head("POST", "/api/v1/notes", headers, with_key=True) + b"x" * 100)
    assert client.read().status == 415
    client.send(b"x" * 100)
    assert 0.1 < closed_after_s(client) < 1.5


def test_an_idle_connection_and_one_at_work_are_left_alone(impatient):
    notebook, port = impatient
    key = notebook.new_key()
    idle, working = RawClient(port, key), RawClient(port, key)
    assert idle.ask("GET", "/healthz").status == 200
    working.send(working.head("GET", "/api/v1/wait", [], with_key=True))
    time.sleep(0.6)
    assert idle.ask("GET", "/healthz").status == 200
    notebook.gate_open.set()
    assert working.read().status == 200
    idle.close()
    working.close()


def cycles() -> int:
    return sum(type(each) is RequestResponseCycle for each in gc.get_objects())


def test_answered_requests_leave_nothing_that_only_the_collector_would_find(port):
    client = RawClient(port)
    raw = client.head("GET", "/healthz", [], with_key=False)
    gc.disable()
    try:
        before = cycles()
        for _ in range(50):
            client.send(raw)
            assert client.read().status == 200
        assert cycles() <= before + 1
    finally:
        gc.enable()
        client.close()
