"""Who is let through, what the limits say of it, and that a refused request costs nothing."""

import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving
from vettance.errors import LimitReached, Unauthorized
from vettance.limits.own_limits import OwnLimits
from vettance.limits.quota import Quota
from vettance.limits.throttle import Throttle
from vettance.tenants.tenant import Key, Tenant, make_key
from vettance.web.gate import Gate
from vettance.web.routing import Access, Call, Route, RouteReply

NOTES = "/api/v1/notes"
LIMIT_HEADERS = {
    f"x-{kind}-{what}" for kind in ("quota", "ratelimit") for what in ("limit", "remaining", "reset")
}
NOON_S = 1_800_000_000 // 3600 * 3600


async def answer(_call: Call) -> RouteReply:
    return RouteReply({})


def route(product: str | None = None) -> Route:
    return Route("GET", "/x", answer, "s", "t", Access.KEY, product=product)


class Clock:
    """A moment that the test moves; both clocks of the gate show it."""

    def __init__(self) -> None:
        self.now_s = float(NOON_S)

    def __call__(self) -> float:
        return self.now_s


class Ring:
    """A key ring of one key."""

    def __init__(self, **settings: object) -> None:
        self.tenant = Tenant(id="ten_1", name="One", **settings)
        self.key = Key(id="key_1", tenant="ten_1", digest=b"", hint="", created_at_ms=0)
        self.text = make_key(live=False)

    def find(self, api_key: str) -> tuple[Key, Tenant] | None:
        return (self.key, self.tenant) if api_key == self.text else None


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns that never waits, as counting in one process never does."""
    with pytest.raises(StopIteration) as end:
        call.send(None)
    return end.value.value


class Asker:
    """Asks one gate with the one key of its ring."""

    def __init__(self, **settings: object) -> None:
        self.ring = Ring(**settings)
        self.clock = Clock()
        self.gate = Gate(self.ring, OwnLimits(Throttle(), Quota(), self.clock, self.clock), unix_s=self.clock)

    def ask(self, product: str | None = None):
        sent = [(b"x-api-key", self.ring.text.encode())]
        return at_once(self.gate.admit(route(product), dict(sent), sent))

    def numbers(self, product: str | None = None) -> dict[str, int]:
        return {name.decode().removeprefix("x-"): int(value) for name, value in self.ask(product).headers}


def test_a_good_key_is_let_through_with_its_tenant():
    asker = Asker()
    admission = asker.ask()
    assert admission.refusal is None
    assert (admission.tenant, admission.key) == (asker.ring.tenant, asker.ring.key)


def test_the_headers_count_down_and_name_their_moments():
    asker = Asker(throttle=300, quota=10_000)
    first = asker.numbers()
    assert first == {
        "quota-limit": 10_000,
        "quota-remaining": 9_999,
        "quota-reset": NOON_S + 3600,
        "ratelimit-limit": 300,
        "ratelimit-remaining": 299,
        "ratelimit-reset": NOON_S + 60,
    }
    asker.clock.now_s += 10.25
    second = asker.numbers()
    assert (second["quota-remaining"], second["ratelimit-remaining"]) == (9_998, 298)
    assert second["ratelimit-reset"] == NOON_S + 60


def test_the_request_after_the_last_of_the_throttle_is_refused():
    asker = Asker(throttle=3)
    assert [asker.ask().refusal for _ in range(3)] == [None, None, None]
    asker.clock.now_s += 20.5
    refusal = asker.ask().refusal
    assert isinstance(refusal, LimitReached)
    assert refusal.details == {"limit": 3, "window": 60, "retryAfter": 40}
    assert refusal.headers == (("retry-after", "40"),)
    asker.clock.now_s += 40
    assert asker.ask().refusal is None


@given(st.floats(0, 3599.9), st.sampled_from([{"throttle": 1}, {"quota": 1}]))
def test_whoever_waits_as_long_as_told_is_let_through(moment_s, limit):
    asker = Asker(**limit)
    asker.clock.now_s += moment_s
    assert asker.ask().refusal is None
    refusal = asker.ask().refusal
    assert refusal is not None
    asker.clock.now_s += refusal.details["retryAfter"]
    assert asker.ask().refusal is None


def test_the_request_after_the_last_of_the_quota_is_refused_until_the_next_hour():
    asker = Asker(quota=2)
    asker.clock.now_s += 600
    assert [asker.ask().refusal for _ in range(2)] == [None, None]
    refusal = asker.ask().refusal
    assert isinstance(refusal, LimitReached)
    assert refusal.details == {"limit": 2, "window": 3600, "retryAfter": 3000}
    asker.clock.now_s += 3000
    assert asker.ask().refusal is None


def test_a_request_refused_by_the_quota_is_not_charged_to_the_throttle():
    asker = Asker(throttle=10, quota=1)
    assert asker.numbers()["ratelimit-remaining"] == 9
    for _ in range(20):
        assert asker.numbers()["ratelimit-remaining"] == 9


async def test_what_a_later_check_refuses_is_given_back_and_the_headers_say_so():
    asker = Asker(throttle=3, quota=3)
    asker.ask()
    admission = asker.ask()
    headers = dict(await asker.gate.refund(admission))
    assert (headers[b"x-ratelimit-remaining"], headers[b"x-quota-remaining"]) == (b"2", b"2")
    assert asker.numbers()["quota-remaining"] == 1


def test_a_request_refused_by_the_throttle_is_not_charged_to_the_quota():
    asker = Asker(throttle=1, quota=10)
    assert asker.numbers()["quota-remaining"] == 9
    for _ in range(20):
        assert asker.numbers()["quota-remaining"] == 9
    assert asker.numbers()["ratelimit-remaining"] == 0


def test_a_missing_product_is_refused_without_any_charge_but_with_the_headers():
    asker = Asker(throttle=10, quota=10)
    for _ in range(20):
        admission = asker.ask("aml")
        assert admission.refusal.status == 403
        assert {name.decode() for name, _ in admission.headers} == LIMIT_HEADERS
    assert asker.numbers()["ratelimit-remaining"] == 9
    assert Asker(aml=True).ask("aml").refusal is None


def test_a_missing_product_comes_before_a_used_up_limit():
    asker = Asker(throttle=0, quota=0)
    assert asker.ask("aml").refusal.status == 403


def test_the_throttle_comes_before_the_quota():
    assert Asker(throttle=0, quota=0).ask().refusal.details["window"] == 60


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [(b"x-api-key", b"")],
        [(b"x-api-key", b"vtc_live_" + b"0" * 32)],
        [(b"x-api-key", "vtc_live_é".encode())],
        [(b"x-api-key", b"\xff\xfe")],
        [(b"authorization", b"Bearer x")],
    ],
)
def test_every_bad_credential_is_refused_in_the_same_words(sent):
    asker = Asker()
    with pytest.raises(Unauthorized) as caught:
        at_once(asker.gate.admit(route(), dict(sent), sent))
    assert caught.value.message == "Send a valid API key in the x-api-key header."
    assert caught.value.details == {}


def test_of_two_keys_in_one_request_neither_is_believed():
    asker = Asker()
    good = (b"x-api-key", asker.ring.text.encode())
    for sent in ([good, good], [(b"x-api-key", b"other"), good]):
        with pytest.raises(Unauthorized):
            at_once(asker.gate.admit(route(), dict(sent), sent))
    other = [good, (b"accept", b"a"), (b"accept", b"b")]
    assert at_once(asker.gate.admit(route(), dict(other), other)).refusal is None


# From here on over the wire.


def test_every_answer_to_a_known_caller_carries_the_limits(client):
    for method, target, body in [
        ("GET", NOTES, None),
        ("POST", NOTES, b"{"),
        ("GET", f"{NOTES}/nte_1", None),
        ("GET", "/api/v1/aml/notes", None),
        ("POST", NOTES, b"x" * 1_100_000),
    ]:
        assert client.ask(method, target, body).headers.keys() >= LIMIT_HEADERS


def test_answers_to_nobody_carry_no_limits_and_no_hint(port, notebook):
    client = RawClient(port)
    wrong = make_key(live=False)
    answers = [
        client.ask("GET", NOTES),
        client.ask("GET", NOTES, headers=[("x-api-key", wrong)]),
        client.ask("GET", NOTES, headers=[("x-api-key", b"\xc3\xa9")]),
        client.ask("GET", NOTES, headers=[("x-api-key", wrong), ("X-Api-Key", wrong)]),
    ]
    client.close()
    assert {answer.status for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    for answer in answers:
        assert answer.error["code"] == "UNAUTHORIZED"
        assert not LIMIT_HEADERS & answer.headers.keys()
        assert answer.headers["www-authenticate"].startswith("ApiKey")


def test_a_revoked_key_is_refused_in_the_words_of_an_unknown_one(port, notebook):
    key = notebook.new_key()
    client = RawClient(port, key)
    assert client.ask("GET", NOTES).status == 200
    del notebook.keys[key]
    revoked = client.ask("GET", NOTES)
    nobody = client.ask("GET", NOTES, with_key=False)
    client.close()
    assert revoked.status == 401
    assert revoked.content == nobody.content


def test_the_open_pages_ask_for_no_key_and_count_nothing(port):
    client = RawClient(port)
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs", "/docs/start.js"):
        answer = client.ask("GET", path)
        assert answer.status == 200
        assert not LIMIT_HEADERS & answer.headers.keys()
    client.close()


def test_a_used_up_throttle_is_told_with_a_time_to_wait(port, notebook):
    client = RawClient(port, notebook.new_key(throttle=2))
    assert [client.ask("GET", NOTES).status for _ in range(2)] == [200, 200]
    refused = client.ask("GET", NOTES)
    client.close()
    assert refused.status == 429
    assert refused.error["code"] == "QUOTA_EXCEEDED"
    details = refused.error["details"]
    assert (details["limit"], details["window"]) == (2, 60)
    assert refused.headers["retry-after"] == str(details["retryAfter"])
    assert 55 <= details["retryAfter"] <= 60
    assert refused.headers.keys() >= LIMIT_HEADERS


def test_of_many_parallel_requests_exactly_the_limit_is_let_through():
    notebook = Notebook()
    with serving(notebook.edge) as port:
        key = notebook.new_key(throttle=25)
        statuses: list[int] = []

        def ask() -> None:
            client = RawClient(port, key)
            statuses.extend(client.ask("GET", NOTES).status for _ in range(10))
            client.close()

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (statuses.count(200), statuses.count(429)) == (25, 55)
