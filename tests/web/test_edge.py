"""What the edge answers on a real socket: the order of checks, bodies, request ids, hostile clients."""

import json
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving
from vettance.limits.loop_time import CREDIT_S, PART_OF_ONE
from vettance.wire.payload import BODY_BYTES_MAX

NOTES = "/api/v1/notes"
GOOD = {"text": "hello"}
LARGE = b'{"text":"' + b"x" * BODY_BYTES_MAX + b'"}'


def test_a_request_is_handled_and_answered_as_json(client):
    answer = client.ask("POST", NOTES, GOOD)
    assert answer.status == 201
    assert answer.json["text"] == "hello"
    assert client.ask("GET", f"{NOTES}/{answer.json['id']}").json == answer.json


def test_headers_of_a_reply_reach_the_client(client):
    note = client.ask("POST", NOTES, GOOD).json["id"]
    assert client.ask("GET", f"{NOTES}/{note}").headers["x-note"] == "yes"


# One row for each row of the error table that the edge answers for: request, status, code, details.
@pytest.mark.parametrize(
    ("method", "target", "body", "headers", "status", "code", "details"),
    [
        ("POST", NOTES, b"{", (), 400, "VALIDATION_ERROR", {"body": "must be valid JSON"}),
        (
            "GET",
            f"{NOTES}?page=0",
            None,
            (),
            400,
            "VALIDATION_ERROR",
            {"page": "must be an integer from 1 to 1000000000000000"},
        ),
        ("POST", f"{NOTES}/by-text/%00", None, (), 400, "VALIDATION_ERROR", ...),
        ("POST", "/api/v1/fail/invalid", None, (), 400, "VALIDATION_ERROR", {"a.b": "must be good"}),
        (
            "POST",
            "/api/v1/fail/unprocessable",
            None,
            (),
            422,
            "UNPROCESSABLE_ENTITY",
            {"a": "must make sense"},
        ),
        ("GET", "/api/v1/aml/notes", None, (), 403, "FORBIDDEN", {}),
        ("GET", f"{NOTES}/nte_1", None, (), 404, "NOT_FOUND", {}),
        ("GET", f"{NOTES}/%ff%00", None, (), 404, "NOT_FOUND", {}),
        ("GET", "/api/v1/unknown", None, (), 404, "NOT_FOUND", {}),
        ("GET", f"{NOTES}/", None, (), 404, "NOT_FOUND", {}),
        (
            "POST",
            "/api/v1/fail/conflict",
            None,
            (),
            409,
            "CONFLICT",
            {"reason": "duplicate_entry", "id": "lst_1"},
        ),
        ("PATCH", NOTES, None, (), 405, "METHOD_NOT_ALLOWED", {}),
        ("OPTIONS", NOTES, None, (), 405, "METHOD_NOT_ALLOWED", {}),
        ("POST", NOTES, LARGE, (), 413, "PAYLOAD_TOO_LARGE", ...),
        ("POST", NOTES, b"a=1", (("content-type", "text/plain"),), 415, "UNSUPPORTED_MEDIA_TYPE", {}),
        ("POST", "/api/v1/fail/gateway", None, (), 502, "BAD_GATEWAY", {}),
        ("POST", "/api/v1/fail/timeout", None, (), 504, "GATEWAY_TIMEOUT", {}),
    ],
)
def test_each_row_of_the_error_table_has_its_status_code_and_details(
    client, method, target, body, headers, status, code, details
):
    answer = client.ask(method, target, body, headers=list(headers))
    assert answer.status == status
    assert answer.error["code"] == code
    if details is not ...:
        assert answer.error["details"] == details
    assert answer.headers["x-request-id"].startswith("req_")


def test_a_bug_is_answered_500_with_the_request_id_and_nothing_of_the_cause(port, notebook):
    client = RawClient(port, notebook.new_key())
    answer = client.ask("POST", "/api/v1/fail/bug", headers=[("x-request-id", "mine-1")])
    assert answer.status == 500
    assert answer.error["code"] == "INTERNAL_SERVER_ERROR"
    assert answer.error["details"] == {"requestId": "mine-1"}
    assert b"secret" not in answer.content
    assert b"Error" not in answer.content
    request_id, error = notebook.errors.pop()
    assert request_id == "mine-1"
    assert isinstance(error, ZeroDivisionError)
    assert "x-quota-remaining" in answer.headers
    client.close()


def test_an_unreachable_store_is_answered_503_with_a_time_to_wait(port, notebook):
    client = RawClient(port, notebook.new_key())
    answer = client.ask("POST", "/api/v1/fail/store")
    assert answer.status == 503
    assert answer.error["code"] == "SERVICE_UNAVAILABLE"
    assert answer.error["details"] == {"retryAfter": 1}
    assert answer.headers["retry-after"] == "1"
    assert b"disk" not in answer.content
    assert not notebook.errors, "of a store that is away the store itself tells"
    client.close()


def test_a_wrong_method_is_told_which_methods_there_are(client):
    assert client.ask("PUT", NOTES).headers["allow"] == "GET, HEAD, POST"
    assert client.ask("PATCH", "/healthz").headers["allow"] == "GET, HEAD"


def test_head_answers_like_get_without_a_body(client):
    client.ask("POST", NOTES, GOOD)
    get = client.ask("GET", NOTES)
    head = client.ask("HEAD", NOTES)
    assert head.status == 200
    assert head.headers["content-length"] == str(len(get.content))
    assert head.headers.keys() == get.headers.keys()
    assert client.ask("HEAD", f"{NOTES}/nte_1").status == 404
    assert client.ask("GET", NOTES).content == get.content, "the connection is still in step"


def test_path_parameters_are_decoded_once_from_the_raw_path(client):
    answer = client.ask("GET", "/api/v1/parts/10.0.0.0%2F8/a+b%252F%C3%A9?q=%2F+")
    assert (answer.json["one"], answer.json["two"], answer.json["query"]) == (
        "10.0.0.0/8",
        "a+b%2Fé",
        "q=%2F+",
    )


@pytest.mark.parametrize("sent", ["a", "A-b_c.9", "x" * 64])
def test_a_usable_request_id_is_echoed(client, sent):
    assert client.ask("GET", NOTES, headers=[("x-request-id", sent)]).headers["x-request-id"] == sent
    assert client.ask("GET", "/nowhere", headers=[("x-request-id", sent)]).headers["x-request-id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 65, "a b", "a;b", b"\xc3\xa9", "<script>", "a\tb"])
def test_an_unusable_request_id_is_replaced(client, sent):
    echoed = client.ask("GET", NOTES, headers=[("x-request-id", sent)]).headers["x-request-id"]
    assert echoed.startswith("req_")
    assert len(echoed) == 36


def test_another_tenants_note_and_an_absent_one_cannot_be_told_apart(client, port, notebook):
    note = client.ask("POST", NOTES, GOOD).json["id"]
    stranger = RawClient(port, notebook.new_key())
    there = stranger.ask("GET", f"{NOTES}/{note}")
    absent = stranger.ask("GET", f"{NOTES}/{notebook.ids.make('nte')}")
    malformed = stranger.ask("GET", f"{NOTES}/x")
    assert there.status == 404
    assert there.content == absent.content == malformed.content
    ignored = ("x-request-id", "date", "x-quota-remaining", "x-ratelimit-remaining", "x-ratelimit-reset")
    shown = [
        [(n, v) for n, v in each.headers.items() if n not in ignored] for each in (there, absent, malformed)
    ]
    assert shown[0] == shown[1] == shown[2]
    stranger.close()


# The order of checks: each request is wrong in its own way and in every way that comes later.
@pytest.mark.parametrize(
    ("method", "target", "key", "body", "status"),
    [
        ("PATCH", "/nowhere", None, LARGE, 404),
        ("PATCH", NOTES, None, LARGE, 405),
        ("POST", NOTES, None, LARGE, 401),
        ("POST", NOTES, "empty", LARGE, 429),
        ("POST", NOTES, "good", LARGE, 415),
        ("POST", NOTES, "good", b"{", 415),
    ],
)
def test_the_first_check_that_fails_gives_the_answer(port, notebook, method, target, key, body, status):
    keys = {None: None, "good": notebook.new_key(), "empty": notebook.new_key(quota=0)}
    client = RawClient(port, keys[key])
    headers = [("content-type", "text/plain"), ("idempotency-key", "k")]
    assert client.ask(method, target, body, headers=headers).status == status
    client.close()


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json ; charset=utf8",
        "application/json; odata=verbose",
    ],
)
def test_json_in_utf8_is_taken_however_it_is_written(client, content_type):
    assert client.ask("POST", NOTES, GOOD, headers=[("content-type", content_type)]).status == 201


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "",
        "json",
        b"\xff",
    ],
)
def test_a_body_of_another_type_is_refused(client, content_type):
    assert client.ask("POST", NOTES, GOOD, headers=[("content-type", content_type)]).status == 415


def test_an_encoded_body_is_refused(client):
    assert client.ask("POST", NOTES, GOOD, headers=[("content-encoding", "gzip")]).status == 415


def test_no_body_at_all_is_a_fault_of_shape_whatever_its_type(client):
    answer = client.ask("POST", NOTES, headers=[("content-type", "text/plain"), ("content-length", "0")])
    assert answer.status == 400
    assert client.ask("POST", NOTES).status == 400


def test_a_body_of_exactly_the_limit_is_taken(client):
    padding = b" " * (BODY_BYTES_MAX - len(b'{"text":"x"}'))
    assert client.ask("POST", NOTES, b'{"text":"x"}' + padding).status == 201
    assert client.ask("POST", NOTES, b'{"text":"x"}' + padding + b" ").status == 413


def test_large_bodies_wait_for_what_receiving_them_takes_and_small_ones_for_nothing(client, monkeypatch):
    monkeypatch.setattr("vettance.web.request_body.RECEIPT_S", 0.02 / BODY_BYTES_MAX)
    body = b'{"text":"x"}'
    padding = b" " * (BODY_BYTES_MAX - len(body))
    started = time.perf_counter()
    for _ in range(3):
        assert client.ask("POST", NOTES, body + padding).status == 201
    # All but the last pieces were paid for, beyond the credit: receiving them is its part of the time.
    paused_s = (2 * 0.02 - CREDIT_S) / PART_OF_ONE
    assert time.perf_counter() - started >= paused_s
    before = time.perf_counter()
    assert client.ask("POST", NOTES, GOOD).status == 201
    assert time.perf_counter() - before < paused_s / 2


def test_a_declared_size_over_the_limit_is_refused_before_the_body_is_sent(client):
    headers = [("content-type", "application/json"), ("content-length", "9" * 12)]
    client.send(client.head("POST", NOTES, headers, with_key=True))
    answer = client.read()
    assert answer.status == 413
    assert answer.headers["connection"] == "close"


def test_an_endless_chunked_body_is_cut_off_at_the_limit(client):
    headers = [("content-type", "application/json"), ("transfer-encoding", "chunked")]
    client.send(client.head("POST", NOTES, headers, with_key=True))
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for _ in range(BODY_BYTES_MAX // 0x10000 + 2):
        client.send(chunk)
    answer = client.read()
    assert answer.status == 413
    assert answer.headers["connection"] == "close"


def test_a_client_that_goes_on_sending_after_a_refusal_still_reads_the_answer(client):
    assert client.ask("POST", NOTES, b"x" * 5_000_000).status == 413
    assert client.ask("GET", NOTES).status == 200


@pytest.mark.parametrize("target", ["/api/v1/nothing", NOTES])
def test_the_last_request_of_a_connection_is_read_to_its_end_though_it_is_refused(client, target):
    headers = [("connection", "close"), ("content-type", "text/plain"), ("content-length", "1000000")]
    client.send(client.head("POST", target, headers, with_key=True))
    for _ in range(20):
        client.send(b"x" * 50_000)
        time.sleep(0.005)
    assert client.read().status in (404, 415)
    assert client.is_closed()


def test_a_chunked_body_is_put_together(client):
    headers = [("content-type", "application/json"), ("transfer-encoding", "chunked")]
    body = json.dumps(GOOD).encode()
    client.send(client.head("POST", NOTES, headers, with_key=True))
    for byte in body:
        client.send(b"1\r\n" + bytes([byte]) + b"\r\n")
        time.sleep(0.001)
    client.send(b"0\r\n\r\n")
    assert client.read().json["text"] == "hello"
    assert client.ask("GET", NOTES).json["total"] == 1


def test_a_client_that_leaves_in_mid_body_changes_nothing(client, notebook):
    before = notebook.handled
    headers = [("content-type", "application/json"), ("content-length", "100")]
    client.send(client.head("POST", NOTES, headers, with_key=True) + b'{"text":')
    time.sleep(0.05)
    client.close()
    time.sleep(0.1)
    assert client.ask("GET", NOTES).json["total"] == 0
    assert notebook.handled == before


def test_a_refused_request_leaves_its_connection_usable(client):
    assert client.ask("POST", NOTES, b"x" * 100_000, headers=[("content-type", "text/plain")]).status == 415
    assert client.ask("POST", NOTES, b"x" * 100_000, with_key=False).status == 401
    assert client.ask("POST", NOTES, GOOD).status == 201


def test_pipelined_requests_are_answered_in_order(client):
    one = client.head("GET", "/api/v1/parts/a/1", [], with_key=True)
    two = client.head("GET", "/nowhere", [], with_key=True)
    client.send(one + two + one)
    assert [client.read().status for _ in range(3)] == [200, 404, 200]


def test_an_expectation_is_answered_before_the_body_is_sent(client):
    body = json.dumps(GOOD).encode()
    headers = [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("expect", "100-continue"),
    ]
    client.send(client.head("POST", NOTES, headers, with_key=True))
    assert client._until(b"\r\n\r\n").endswith(b"100 Continue")
    client.send(body)
    assert client.read().status == 201


def test_a_request_that_wants_another_protocol_is_answered_in_this_one(client):
    headers = [("connection", "Upgrade"), ("upgrade", "websocket")]
    assert client.ask("GET", NOTES, headers=headers).status == 200


def test_a_route_that_takes_no_body_ignores_one(client):
    assert client.ask("GET", NOTES, b"not json", headers=[("content-type", "text/plain")]).status == 200
    assert client.ask("GET", NOTES).status == 200


@pytest.mark.parametrize("framing", [("content-length", "100"), ("transfer-encoding", "chunked")])
def test_a_body_that_does_not_arrive_ends_with_a_refusal(framing):
    notebook = Notebook(body_arrival_s_max=0.2)
    with serving(notebook.edge) as port:
        client = RawClient(port, notebook.new_key())
        headers = [("content-type", "application/json"), framing]
        client.send(client.head("POST", NOTES, headers, with_key=True) + b"9")
        answer = client.read()
        assert answer.status == 400
        assert answer.error["details"] == {"body": "must arrive within 0.2 seconds"}
        assert answer.headers["connection"] == "close"
        assert client.ask("POST", NOTES, GOOD).status == 201
        client.close()
        assert not notebook.errors
    assert notebook.edge.in_flight == 0


def test_while_draining_only_the_open_pages_answer():
    notebook = Notebook()
    with serving(notebook.edge) as port:
        client = RawClient(port, notebook.new_key())
        notebook.edge.draining = True
        answer = client.ask("GET", NOTES)
        assert answer.status == 503
        assert answer.error["details"] == {"retryAfter": 1}
        assert answer.headers["retry-after"] == "1"
        assert client.ask("GET", "/healthz").status == 200
        notebook.edge.draining = False
        assert client.ask("GET", NOTES).status == 200
        client.close()


def test_requests_beyond_the_bound_of_those_at_work_are_turned_away():
    notebook = Notebook(in_flight_max=2)
    with serving(notebook.edge) as port:
        key = notebook.new_key()
        waiting = [RawClient(port, key) for _ in range(2)]
        for client in waiting:
            client.send(client.head("GET", "/api/v1/wait", [], with_key=True))
        late = RawClient(port, key)
        deadline = time.monotonic() + 5
        while notebook.edge.in_flight < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert late.ask("GET", NOTES).status == 503
        assert late.ask("GET", "/healthz").status == 200
        notebook.gate_open.set()
        assert [client.read().status for client in waiting] == [200, 200]
        assert late.ask("GET", NOTES).status == 200
        for client in (*waiting, late):
            client.close()


def test_whoever_is_past_a_limit_waits_and_takes_no_place_from_others():
    notebook = Notebook(in_flight_max=1, hold_s=1.0, held_max=3)
    with serving(notebook.edge) as port:
        key = notebook.new_key(throttle=0)
        loud, quick = [RawClient(port, key) for _ in range(3)], RawClient(port, notebook.new_key())
        for client in loud:
            client.send(client.head("GET", NOTES, [], with_key=True))
        deadline = time.monotonic() + 5
        while notebook.edge.held < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert quick.ask("GET", NOTES).status == 200
        beyond = RawClient(port, key)
        assert beyond.ask("GET", NOTES).status == 429
        assert notebook.edge.held == 3
        assert [client.read().status for client in loud] == [429] * 3
        assert notebook.edge.held == 0
        for client in (*loud, beyond, quick):
            client.close()


def test_bodies_that_arrive_slowly_take_no_place_from_other_requests():
    notebook, whole = Notebook(in_flight_max=1), json.dumps(GOOD).encode()
    with serving(notebook.edge) as port:
        slow = [RawClient(port, notebook.new_key()) for _ in range(3)]
        for client in slow:
            head = client.head(
                "POST",
                NOTES,
                [("content-type", "application/json"), ("content-length", str(len(whole)))],
                with_key=True,
            )
            client.send(head + whole[:1])
        quick = RawClient(port, notebook.new_key())
        deadline = time.monotonic() + 5
        while notebook.edge.in_flight < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert [quick.ask("POST", NOTES, GOOD).status for _ in range(3)] == [201] * 3
        for client in slow:
            client.send(whole[1:])
            assert client.read().status == 201
            client.close()
        quick.close()


def test_large_bodies_beyond_the_share_of_a_tenant_are_turned_away_and_no_small_ones():
    notebook = Notebook(body_bytes_held_max=1_000_000)
    with serving(notebook.edge) as port:
        slow = [RawClient(port, key) for key in [notebook.new_key()] * 6]
        for client in slow:
            headers = [("content-type", "application/json"), ("content-length", "200000")]
            client.send(client.head("POST", NOTES, headers, with_key=True) + b" " * 199_999)
        refused = [client for client in slow if not client.is_silent()]
        assert 3 <= len(refused) < 6
        for client in refused:
            answer = client.read()
            assert (answer.status, answer.error["code"]) == (503, "SERVICE_UNAVAILABLE")
        large = b'{"text":"note","metadata":' + b" " * 200_000 + b"{}}"
        own, other = RawClient(port, slow[0].api_key), RawClient(port, notebook.new_key())
        costs = []
        for headers in ([], [("idempotency-key", "k")]) * 2:
            answer = own.ask("POST", NOTES, large, headers=headers)
            assert answer.status == 503
            costs.append((answer.headers["x-quota-remaining"], answer.headers["x-ratelimit-remaining"]))
            own.close()
        assert len(set(costs)) == 1, "a refused request costs nothing"
        assert [own.ask("POST", NOTES, GOOD).status for _ in range(20)] == [201] * 20
        assert [other.ask("POST", NOTES, body).status for body in (large, GOOD) * 10] == [201] * 20
        for client in (*slow, own, other):
            client.close()
        deadline = time.monotonic() + 5
        while notebook.edge.in_flight and time.monotonic() < deadline:
            time.sleep(0.005)
        assert other.ask("POST", NOTES, large).status == 201
        other.close()
    assert not notebook.errors


def test_a_tenant_that_fills_the_service_leaves_room_for_others():
    notebook = Notebook(in_flight_max=4)
    with serving(notebook.edge) as port:
        key = notebook.new_key()
        waiting = [RawClient(port, key) for _ in range(5)]
        for client in waiting:
            client.send(client.head("GET", "/api/v1/wait", [], with_key=True))
        deadline = time.monotonic() + 5
        while notebook.edge.in_flight < 4 and time.monotonic() < deadline:
            time.sleep(0.005)
        own, other = RawClient(port, key), RawClient(port, notebook.new_key())
        costs = []
        for _ in range(3):
            refused = own.ask("GET", NOTES)
            assert refused.status == 503
            costs.append((refused.headers["x-quota-remaining"], refused.headers["x-ratelimit-remaining"]))
        assert len(set(costs)) == 1, "a refused request costs nothing"
        assert [other.ask("GET", NOTES).status for _ in range(5)] == [200] * 5
        notebook.gate_open.set()
        assert sorted(client.read().status for client in waiting) == [200, 200, 200, 200, 503]
        assert own.ask("GET", NOTES).status == 200
        for client in (*waiting, own, other):
            client.close()


def test_parallel_requests_are_all_answered(port, notebook):
    key = notebook.new_key()
    statuses = []

    def ask() -> None:
        client = RawClient(port, key)
        statuses.extend(client.ask("POST", NOTES, GOOD).status for _ in range(20))
        client.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 160


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
_BODIES = (
    st.binary(max_size=300)
    | _JSON.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries({}, optional={"text": _JSON, "metadata": _JSON, "tenantId": _JSON}).map(
        lambda value: json.dumps(value).encode("utf-8", "surrogatepass")
    )
    | st.integers(1, 200_000).map(lambda depth: b"[" * depth)
    | st.integers(1, 20_000).map(lambda depth: b'{"metadata":' + b'{"a":' * depth + b"1" + b"}" * (depth + 1))
    | st.sampled_from(
        [
            b"\xef\xbb\xbf{}",
            b'{"text":"\\u0000"}',
            b'{"text":"\\ud800"}',
            b'{"text":NaN}',
            b'{"text":1e999}',
            b'{"text":"a"}x',
            b"null",
            b'{"text":"a","text":1}',
            b'{"text":123456789012345678901234567890}',
        ]
    )
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_BODIES)
def test_no_body_is_answered_with_anything_but_success_or_a_refusal(client, body):
    answer = client.ask("POST", NOTES, body)
    assert answer.status in (201, 400, 422)
    if answer.status != 201:
        assert answer.error["code"] in ("VALIDATION_ERROR", "UNPROCESSABLE_ENTITY")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"]),
    st.sampled_from(["", f"{NOTES}/", "/api/v1/parts/", "/docs/", f"{NOTES}?page=", "/openapi.json?"]),
    st.text("abz019%/?&=+;:.~_-!$'()*,@\"<>[]^`{|}", max_size=30),
)
def test_no_target_is_answered_with_a_5xx(client, method, start, end):
    client.send(client.head(method, f"{start or '/'}{end}", [("content-length", "0")], with_key=True))
    try:
        assert client.read(no_body=method == "HEAD").status < 500
    except (ConnectionError, ValueError):
        client.close()
