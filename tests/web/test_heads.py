"""What is no HTTP or has two readings is refused; an unknown method is told which ones there are."""

import pytest

from tests.web.raw_client import RawClient

GET = b"GET /healthz HTTP/1.1\r\nhost: a\r\n"
POST = b"POST /healthz HTTP/1.1\r\nhost: a\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n"

REFUSED = {
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"host: b\r\n\r\n",
    "one host twice": GET + b"Host: a\r\n\r\n",
    "two hosts in 1.0": b"GET /healthz HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n",
    "a host of two words": b"GET /healthz HTTP/1.1\r\nhost: a b\r\n\r\n",
    "a host with a path": b"GET /healthz HTTP/1.1\r\nhost: a/b\r\n\r\n",
    "a host with a user": b"GET /healthz HTTP/1.1\r\nhost: u@a\r\n\r\n",
    "0.9": b"GET /healthz\r\n\r\n",
    "0.9 said": b"GET /healthz HTTP/0.9\r\nhost: a\r\n\r\n",
    "1.2": b"GET /healthz HTTP/1.2\r\nhost: a\r\n\r\n",
    "2.0": b"GET /healthz HTTP/2.0\r\nhost: a\r\n\r\n",
    "preface of 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "9.9": b"GET /healthz HTTP/9.9\r\nhost: a\r\n\r\n",
    "1.11": b"GET /healthz HTTP/1.11\r\nhost: a\r\n\r\n",
    "small letters": b"GET /healthz http/1.1\r\nhost: a\r\n\r\n",
    "length and chunked": CHUNKED + b"content-length: 5\r\n\r\n0\r\n\r\n",
    "chunked and length": POST + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx",
    "a length twice": POST + b"content-length: 1\r\ncontent-length: 1\r\n\r\nx",
    "a list of lengths": POST + b"content-length: 1, 1\r\n\r\nx",
    "a length with a sign": POST + b"content-length: +1\r\n\r\nx",
    "a length below zero": POST + b"content-length: -1\r\n\r\nx",
    "a length in hex": POST + b"content-length: 0x1\r\n\r\nx",
    "an empty length": POST + b"content-length:\r\n\r\nx",
    "a length past 64 bits": POST + b"content-length: 99999999999999999999999\r\n\r\nx",
    "a folded line": GET + b"x: a\r\n b\r\n\r\n",
    "a first line folded": b"GET /healthz HTTP/1.1\r\n host: a\r\n\r\n",
    "bare LF": b"GET /healthz HTTP/1.1\nhost: a\n\n",
    "one bare LF": b"GET /healthz HTTP/1.1\r\nhost: a\nx: y\r\n\r\n",
    "a bare LF at the end": GET + b"\n",
    "a bare CR": b"GET /healthz HTTP/1.1\r\nhost: a\rx: y\r\n\r\n",
    "a blank before the colon": b"GET /healthz HTTP/1.1\r\nhost : a\r\n\r\n",
    "a tab before the colon": b"GET /healthz HTTP/1.1\r\nhost\t: a\r\n\r\n",
    "no name": GET + b": b\r\n\r\n",
    "NUL": GET + b"x: a\0b\r\n\r\n",
    "another coding": POST + b"transfer-encoding: gzip\r\n\r\n",
    "no coding": POST + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked not last": POST + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": CHUNKED + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked in 1.0": b"POST /healthz HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk after LF": CHUNKED + b"\r\n0\n\n",
    "a chunk below zero": CHUNKED + b"\r\n-1\r\n\r\n",
    "a chunk and a blank": CHUNKED + b"\r\n0 \r\n\r\n",
    "an endless chunk": CHUNKED + b"\r\nfffffffffffffffff\r\n\r\n",
    "a blank in the path": b"GET /health z HTTP/1.1\r\nhost: a\r\n\r\n",
    "a tab": b"GET\t/healthz HTTP/1.1\r\nhost: a\r\n\r\n",
    "no method": b" /healthz HTTP/1.1\r\nhost: a\r\n\r\n",
    "a method that is no token": b"F@O /healthz HTTP/1.1\r\nhost: a\r\n\r\n",
    "a long method": b"A" * 65 + b" /healthz HTTP/1.1\r\nhost: a\r\n\r\n",
    "an unknown method and no host": b"BREW /healthz HTTP/1.1\r\n\r\n",
    "an unknown method and two lengths": b"BREW /x HTTP/1.1\r\nhost: a\r\n"
    + 2 * b"content-length: 1\r\n"
    + b"\r\n",
    "an unknown method and no version": b"BREW /healthz\r\n\r\n",
}


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED)
def test_what_is_no_http_or_has_two_readings_is_refused_and_the_connection_ended(port, sent):
    client = RawClient(port)
    client.send(sent)
    answer = client.read()
    assert answer.status == 400
    assert answer.error["code"] == "VALIDATION_ERROR"
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("host", [b"", b"a", b"a:80", b"a.example:", b"[::1]:8080", b"10.0.0.1", b"x_y~%20"])
def test_a_host_is_taken_in_every_form_it_has(port, host):
    client = RawClient(port)
    client.send(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    assert client.read().status == 200
    client.close()


@pytest.mark.parametrize("head", [b"\r\n" + GET, b"GET http://b/healthz HTTP/1.1\r\nhost: b\r\n"])
def test_what_clients_may_send_is_taken(port, head):
    client = RawClient(port)
    client.send(head + b"\r\n")
    assert client.read().status == 200
    client.close()


def test_http_1_0_needs_no_host(port):
    client = RawClient(port)
    client.send(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert client.read().status == 200
    assert client.is_closed()


METHODS = [
    "FOO",
    "BREW",
    "get",
    "PROPFIND",
    "TRACE",
    "PURGE",
    "M-SEARCH",
    "A" * 64,
    "X!#$%&'*+-.^_`|~9",
    "PATCHY",
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_a_method_that_is_not_taken_is_told_which_are_however_it_arrives(port, method, pieces):
    client = RawClient(port)
    raw = client.head(method, "/healthz", [("content-length", "5"), ("x-request-id", "mine")], with_key=False)
    raw += b"hello"
    size = -(-len(raw) // pieces)
    for start in range(0, len(raw), size):
        client.send(raw[start : start + size])
    answer = client.read()
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.error["code"] == "METHOD_NOT_ALLOWED"
    assert answer.headers["x-request-id"] == "mine"
    assert client.ask("GET", "/healthz").status == 200
    client.close()


def test_a_strange_method_on_an_unknown_path_and_after_another_request(port, client):
    assert client.ask("GET", "/api/v1/notes").status == 200
    assert client.ask("BREW", "/nowhere").status == 404
    assert client.ask("BREW", "/api/v1/notes", {"text": "x"}).headers["allow"] == "GET, HEAD, POST"
    assert client.ask("BREW", "/api/v1/notes", b"x" * 70_000).status == 405


def test_a_strange_method_that_drips_is_cut_off(port):
    client = RawClient(port)
    client.send(b"BREW /healthz HTTP/1.1\r\n")
    assert 60 <= client.send_until_closed(b"x: " + b"y" * 995 + b"\r\n", 0.001, 500) < 500


def test_answers_come_in_the_order_of_what_was_asked_also_before_a_refusal(notebook, port):
    for rest in (b"G@RBAGE\r\n\r\n", b"BREW /healthz HTTP/1.1\r\nhost: a\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        client = RawClient(port, notebook.new_key())
        slow = client.head("POST", "/api/v1/notes", [("content-length", "12")], with_key=True)
        slow = slow.replace(b"\r\n\r\n", b"\r\ncontent-type: application/json\r\n\r\n") + b'{"text":"x"}'
        client.send(slow + slow + rest)
        assert [client.read().status for _ in range(3)] == [201, 201, 400]
        assert client.is_closed()


def test_a_body_that_is_no_http_is_refused_after_those_before_it(notebook, port):
    client = RawClient(port, notebook.new_key())
    headers = [("transfer-encoding", "chunked"), ("content-type", "application/json")]
    broken = client.head("POST", "/api/v1/notes", headers, with_key=True) + b"zz\r\n"
    client.send(client.head("GET", "/api/v1/notes", [], with_key=True) + broken)
    assert [client.read().status for _ in range(2)] == [200, 400]
    assert client.is_closed()


def test_another_protocol_is_not_taken_up_and_its_request_is_read_whole(notebook, port):
    client = RawClient(port, notebook.new_key())
    offer = [("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"), ("http2-settings", "AAMAAABk")]
    for pieces in (1, 7):
        body = b'{"text":"GET /healthz HTTP/1.1"}'
        headers = [*offer, ("content-type", "application/json"), ("content-length", str(len(body)))]
        raw = client.head("POST", "/api/v1/notes", headers, with_key=True) + body
        raw += client.head("GET", "/healthz", offer, with_key=False)
        size = -(-len(raw) // pieces)
        for start in range(0, len(raw), size):
            client.send(raw[start : start + size])
        assert [client.read().status for _ in range(2)] == [201, 200]
    client.close()


def test_a_tunnel_is_not_opened(port):
    client = RawClient(port)
    client.send(b"CONNECT /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
    assert client.read().status == 405
    assert client.is_closed()


@pytest.mark.parametrize(
    "piece",
    [b"0\r\n" + b"x: y\r\n" * 4_000, b"5;" + b"e" * 20_000, b"0" * 20_000, b"0\r\nx: " + b"y" * 20_000],
    ids=["trailers", "an extension", "noughts before a size", "one trailer"],
)
def test_what_stands_beside_a_body_has_a_bound(notebook, port, piece):
    client = RawClient(port, notebook.new_key())
    headers = [("transfer-encoding", "chunked"), ("content-type", "application/json")]
    client.send(client.head("POST", "/api/v1/notes", headers, with_key=True) + b"2\r\n{}\r\n" + piece)
    more = piece[-1:] * 2_000 if not piece.endswith(b"\n") else b"x: y\r\n" * 400
    assert client.send_until_closed(more, 0.002, 500) < 200


def test_trailers_are_no_headers(notebook, port):
    client = RawClient(port, notebook.new_key())
    headers = [("transfer-encoding", "chunked"), ("content-type", "application/json")]
    for trailer in (b"x-api-key: another", b"content-type: text/plain", b"expect: 100-continue"):
        body = b'f\r\n{"text":"kept"}\r\n0\r\n' + trailer + b"\r\n\r\n"
        client.send(client.head("POST", "/api/v1/notes", headers, with_key=True) + body)
        assert client.read().status == 201
    stranger = RawClient(port)
    with_key = f"0\r\nx-api-key: {client.api_key}\r\n\r\n".encode()
    stranger.send(stranger.head("POST", "/api/v1/notes", headers, with_key=False) + with_key)
    assert stranger.read().status == 401
    client.close()
    stranger.close()
