"""Fifty rules over ten aggregates, each with its own tests: the rule set that throughput is measured with.

python bench/fifty_rules.py > fifty.yaml
"""

from typing import Any, NamedTuple

import yaml

EVENT: dict[str, Any] = {
    "eventName": "payment.attempt",
    "eventCategory": "TRANSACTION",
    "customer": {"externalId": "c"},
    "device": {"fingerprint": "d"},
    "ip": "192.0.2.1",
    "country": "DE",
    "metadata": {"amount": 100, "currency": "EUR", "cardHash": "k", "merchantId": "m"},
}


class Question(NamedTuple):
    """An aggregate, the comparison rules make with it, and how a test brings it to `n`."""

    name: str
    compare: str  # `{n}` is the threshold
    thresholds: tuple[int, ...]
    vary: tuple[str, str] | None = None  # the member that differs from event to event


#: Ten aggregates; three rules ask each of them.
QUESTIONS = (
    Question("ip-events", 'count(by=ip, within="10m") >= {n}', (20, 40, 80)),
    Question("customer-events", 'count(by=customer.external_id, within="1h") >= {n}', (15, 30, 60)),
    Question("card-events", 'count(by=metadata.cardHash, within="1h") >= {n}', (10, 20, 40)),
    Question("spent", 'sum(metadata.amount, by=customer.external_id, within="24h") >= {n}00', (25, 50, 80)),
    Question(
        "usual", 'metadata.amount >= {n} * avg(metadata.amount, by=customer.external_id, within="30d")', ()
    ),
    Question(
        "largest", 'metadata.amount >= {n} * max(metadata.amount, by=customer.external_id, within="7d")', ()
    ),
    Question(
        "customers-of-device",
        'distinct(customer.external_id, by=device.fingerprint, within="24h") >= {n}',
        (5, 10, 20),
        ("customer", "externalId"),
    ),
    Question(
        "cards-of-device",
        'distinct(metadata.cardHash, by=device.fingerprint, within="1h") >= {n}',
        (5, 10, 20),
        ("metadata", "cardHash"),
    ),
    Question(
        "addresses-of-customer",
        'distinct(ip, by=customer.external_id, within="24h") >= {n}',
        (5, 10, 20),
        ("ip", ""),
    ),
    Question(
        "merchants-of-card",
        'distinct(metadata.merchantId, by=metadata.cardHash, within="24h") >= {n}',
        (5, 10, 20),
        ("metadata", "merchantId"),
    ),
)
COUNTRIES = ("KP", "IR", "MM", "SY", "CU", "AF", "YE", "SS", "LY", "HT")


class _Plain(yaml.SafeDumper):
    """Writes every value out; rule sets may not hold anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def fifty_rules() -> str:
    """Return the rule set as YAML. Ordinary events of the benchmark fire none of the rules."""
    rules = [rule for question in QUESTIONS for rule in _asking(question)]
    rules += [_of_amount(number) for number in range(10)]
    rules += [_of_country(country) for country in COUNTRIES]
    assert len(rules) == 50
    head = {
        "name": "Fifty rules",
        "levels": {"medium": 30, "high": 60, "critical": 85},
        "thresholds": {"review": 60, "block": 85},
        "actions": {"MANUAL_REVIEW": "Hold the event and let a person look at it."},
        "rules": rules,
    }
    return yaml.dump(head, Dumper=_Plain, sort_keys=False, width=200)


def _rule(rule_id: str, when: str, fires: dict[str, Any], rests: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": rule_id,
        "family": "benchmark",
        "name": rule_id.replace("-", " ").capitalize(),
        "when": when,
        "score": 20,
        "reason": rule_id.replace("-", "_").upper(),
        "explanation": f"The benchmark rule {rule_id}.",
        "action": "MANUAL_REVIEW",
        "mode": "active",
        "tests": [
            {"name": "fires", **fires, "fires": True},
            {"name": "rests", **rests, "fires": False},
        ],
    }


def _event(**changes: Any) -> dict[str, Any]:
    metadata = {**EVENT["metadata"], **changes.pop("metadata", {})}
    return {**EVENT, **changes, "metadata": metadata}


def _asking(question: Question) -> list[dict[str, Any]]:
    calm = {"event": _event()}
    if not question.thresholds:
        # A multiple of the customer's own habit: one earlier payment of 100 is the habit of the test.
        return [
            _rule(
                f"{question.name}-{n}",
                question.compare.format(n=n),
                {"given": [_event()], "event": _event(metadata={"amount": 100 * n})},
                {"given": [_event()], "event": _event()},
            )
            for n in (5, 8, 12)
        ]
    rules = []
    for n in question.thresholds:
        before = _event()
        if question.vary is not None:
            member, inner = question.vary
            # An address differs in its last group, anything else in its last digits.
            value = f"{before[member][inner]}{{i}}" if inner else "2001:db8::{i}"
            before = _event(**{member: {**before[member], inner: value} if inner else value})
        given = {"given": [{**before, "at": "-3m", "repeat": n, "every": "1s"}], "event": _event()}
        rules.append(_rule(f"{question.name}-{n}", question.compare.format(n=n), given, calm))
    return rules


def _of_amount(number: int) -> dict[str, Any]:
    amount = 2000 + 500 * number
    currency = "EUR" if number % 2 else "USD"
    return _rule(
        f"amount-{amount}-{currency.lower()}",
        f'event.category == "TRANSACTION" and metadata.currency == "{currency}" '
        f"and metadata.amount >= {amount}",
        {"event": _event(metadata={"amount": amount, "currency": currency})},
        {"event": _event()},
    )


def _of_country(country: str) -> dict[str, Any]:
    return _rule(
        f"country-{country.lower()}",
        f'upper(country) == "{country}" and starts_with(event.name, "payment") and metadata.amount > 10',
        {"event": _event(country=country)},
        {"event": _event()},
    )


if __name__ == "__main__":
    print(fifty_rules())
