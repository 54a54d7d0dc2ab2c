"""What nobody reads of a request is named in a header, with what was probably meant, for whoever wants it."""

import difflib
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live import Caller, Service
from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving
from vettance.aml.aml_event import AmlEventBody
from vettance.aml.transfer import known_names as known_to_aml
from vettance.decisions.features import known_names
from vettance.events.event import EventBody
from vettance.wire.suggestions import (
    HEADER_BYTES_MAX,
    UnknownName,
    header_text,
    unknown_members,
    unknown_parameters,
)

EVALUATE = "/api/v1/decisions/evaluate"
HEADER = "x-vettance-unknown"


def found(body, shape=EventBody, known=None):
    return dict(unknown_members({"eventName": "x", **body}, shape, known or known_names()))


@pytest.mark.parametrize(
    ("body", "path", "nearest"),
    [
        ({"customer": {"id": "1"}}, "customer.id", "customer.externalId"),
        ({"amount": 5}, "amount", "metadata.amount"),
        ({"customerId": "1"}, "customerId", "customer.externalId"),
        ({"deviceId": "1"}, "deviceId", "device.externalId"),
        ({"Email": "a@b.c"}, "Email", "customer.email"),
        ({"user_agent": "x"}, "user_agent", "userAgent"),
        ({"sesionId": "x"}, "sesionId", "sessionId"),
        ({"occured_at": 1}, "occured_at", "occurredAt"),
        ({"device": {"fingerPrint": "x"}}, "device.fingerPrint", "device.fingerprint"),
        ({"card_hash": "x"}, "card_hash", "metadata.cardHash"),
        ({"metadata": {"ammount": 1}}, "metadata.ammount", "metadata.amount"),
        ({"metadata": {"Currency": "EUR"}}, "metadata.Currency", "metadata.currency"),
        ({"loyaltyTier": "gold"}, "loyaltyTier", None),
    ],
)
def test_a_name_that_is_not_known_is_told_with_the_one_that_was_meant(body, path, nearest):
    assert found(body) == {path: nearest}


@pytest.mark.parametrize(
    "body",
    [
        EventBody.EXAMPLE,
        {"tenantId": "t", "sdkSignals": {}, "outcome": "failure"},
        {
            "metadata": {
                "amount": 1,
                "card_hash": "x",
                "merchant_id": "m",
                "campaign": "spring",
                "isVpn": True,
            }
        },
        {"customer": {"metadata": {"createdAt": 1, "tier": "gold"}, "signupDate": 1}},
        {"metadata": {"account_age_days": 3, "occurred_at": 1, "sessionId": "s", "success": True}},
        {"payload": {"anything": 1}, "custom_fields": {"at": {"all": 1}}, "location": {"city": "Cork"}},
        {"customer": None, "device": 7, "metadata": []},
    ],
)
def test_what_is_declared_or_read_by_a_rule_in_any_spelling_is_known(body):
    assert found(body) == {}


KNOWN_PATHS = [
    *(f"{path}.{name}" if path else name for path, names in known_names().by_path.items() for name in names),
    *("customer.externalId", "customer.email", "device.fingerprint", "userAgent", "sessionId", "occurredAt"),
]


def words_of(text):
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])|[^\W_]+", text))


def likeness(sent, target):
    """How like two paths are, with nothing left out for speed."""
    place = 0.05 if sent.rpartition(".")[0] == target.rpartition(".")[0] else 0.0
    one, other = ("".join(words_of(path.rpartition(".")[2])) for path in (sent, target))
    if one == other:
        return 0.95 + place
    words, others = words_of(sent), words_of(target)
    if len(words) > 1 and words[-1] == others[-1] and set(words) < set(others):
        return 0.85 + place
    if abs(len(one) - len(other)) > 1 or (one[:1] != other[:1] and one[-1:] != other[-1:]):
        return 0.0
    return min(0.9, difflib.SequenceMatcher(None, one, other).ratio()) + place


@given(
    st.sampled_from(sorted(name for name in KNOWN_PATHS if "." not in name)),
    st.integers(0, 30),
    st.text("abceinort_ID1", max_size=3),
    st.integers(0, 2),
)
@example("amount", 1, "m", 0)
def test_no_name_is_nearer_than_the_one_that_is_told(name, at, put, cut):
    sent = name[:at] + put + name[at + cut :]
    told = found({sent: "x"})
    if sent not in told:
        return
    best = max(likeness(sent, path) for path in KNOWN_PATHS)
    assert told[sent] is None if best < 0.75 else likeness(sent, told[sent]) >= best


def test_hundreds_of_new_names_in_each_event_hold_up_nobody():
    found({"custom_fields": {"first": 1}})  # What there is to compare with is prepared once.
    fields = {f"fieldz_{number}_a": "x" for number in range(350)}
    started_s = time.thread_time()
    found({"custom_fields": fields})
    assert time.thread_time() - started_s < 0.03  # It took more than 0.1 s, and takes less than 0.003 s.


def test_members_of_aml_events_are_known_by_their_own_names():
    known = known_to_aml()
    body = {"externalEventId": "e", "metadata": {"counterparty_id": "1", "branchId": "b", "mine": 1}}
    assert found(body, AmlEventBody, known) == {}
    body = {"externalId": "e", "metadata": {"counterPartyId": "1"}}
    assert found(body, AmlEventBody, known) == {
        "externalId": "customer.externalId",
        "metadata.counterPartyId": "metadata.counterpartyId",
    }


def test_parameters_of_a_query_are_told_too():
    assert unknown_parameters(["limt", "page", "colour"], ("limit", "page")) == [
        UnknownName("?limt", "limit"),
        UnknownName("?colour", None),
    ]


@given(st.dictionaries(st.text(max_size=80), st.integers(), max_size=12))
def test_the_header_is_bounded_ascii_and_holds_names_only(body):
    text = header_text(unknown_members(body, EventBody, known_names()))
    assert re.fullmatch(r"[\x20-\x7e]*", text)
    assert len(text) <= HEADER_BYTES_MAX
    assert text.count(", ") < 8


def test_a_name_cannot_end_or_divide_the_header():
    (text,) = header_text([UnknownName("a\r\nx-evil: 1, b (did you mean c?)é", None)]).splitlines()
    assert text == "a%0D%0Ax-evil%3A%201%2C%20b%20%28did%20you%20mean%20c?%29%C3%A9"


def test_a_tenant_may_switch_the_hints_on_and_they_stand_on_refusals_too():
    notebook = Notebook()
    with serving(notebook.edge) as port:
        told, silent = (
            RawClient(port, notebook.new_key(tell_unknown=True)),
            RawClient(port, notebook.new_key()),
        )
        answer = told.ask("POST", "/api/v1/notes", {"text": "a", "txt": "b"})
        assert (answer.status, answer.headers[HEADER]) == (201, "txt (did you mean text?)")
        answer = told.ask("POST", "/api/v1/notes?page=1", {"Text": "secret"})
        assert (answer.status, answer.headers[HEADER]) == (400, "?page, Text (did you mean text?)")
        answer = told.ask("GET", "/api/v1/notes?limt=5&page=1")
        assert answer.headers[HEADER] == "?limt (did you mean limit?)"
        assert HEADER not in told.ask("POST", "/api/v1/notes", {"text": "a"}).headers
        assert HEADER not in told.ask("POST", "/api/v1/notes", b"[").headers
        assert HEADER not in silent.ask("POST", "/api/v1/notes", {"text": "a", "txt": "b"}).headers
        told.close()
        silent.close()
    assert not notebook.errors


def test_test_keys_are_told_until_their_tenant_switches_it_off(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Novice"))
    event = {"eventName": "payment.attempt", "amount": 5, "customer": {"id": "c-1"}}
    hint = "amount (did you mean metadata.amount?), customer.id (did you mean customer.externalId?)"
    for path in (EVALUATE, "/api/v1/events", "/api/v1/events/async"):
        assert caller.post(path, event).headers[HEADER] == hint
    assert caller.get("/api/v1/lists?listtype=block").headers[HEADER] == "?listtype (did you mean listType?)"
    assert service.cli("tenant", "show", caller.id, "--json")["tellUnknown"] is None
    service.cli("tenant", "set", caller.id, "--tell-unknown", "off")
    service.wait_for(lambda: HEADER not in caller.post(EVALUATE, event).headers)
    service.cli("tenant", "set", caller.id, "--tell-unknown", "on")
    service.wait_for(lambda: caller.post(EVALUATE, event).headers.get(HEADER) == hint)


def test_an_amount_of_an_aml_event_that_is_no_number_is_told(service: Service) -> None:
    bank = Caller(service, *service.new_tenant("Novice bank"))
    service.cli("tenant", "set", bank.id, "--aml", "on", "--json")
    service.wait_for(lambda: bank.get("/api/v1/aml/alerts").status == 200)
    event = {"eventName": "transfer.sent", "externalEventId": "t-1", "customer": {"externalId": "c"}}
    event["metadata"] = {"transferAmount": "9.500,00", "invoiceAmount": "12.50", "conterpartyId": "x"}
    event["customer"]["metadata"] = {"monthlyIncome": "about 3000"}
    assert bank.post("/api/v1/aml/events", event).headers[HEADER] == (
        "metadata.conterpartyId (did you mean metadata.counterpartyId?), "
        "customer.metadata.monthlyIncome (not a number), metadata.transferAmount (not a number)"
    )


def test_an_answer_from_memory_carries_the_hints_of_the_first_one(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Retrying novice"))
    event = {"eventName": "payment.attempt", "amount": 5}
    hint = "amount (did you mean metadata.amount?)"
    for path, body in ((EVALUATE, event), ("/api/v1/events", event), (EVALUATE, {"amount": 5})):
        key = [("Idempotency-Key", f"{path} {len(body)}")]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: caller.post(path, body, headers=dict(key)), range(8)))  # noqa: B023
        answers.append(caller.post(path, {"eventName": "another"}, headers=dict(key)))
        assert {one.status for one in answers} <= {200, 201, 400}
        assert [one.headers.get(HEADER) for one in answers] == [hint] * 9
        assert len({str(one.body) for one in answers}) == 1
