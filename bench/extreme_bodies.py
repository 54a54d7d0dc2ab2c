"""Bodies with every number and text that JSON carries, in every member that the service knows.

They are shared by the fuzzer (`fuzz_requests.py`) and by property tests: whatever they hold, the service
answers, and goes on after a restart.
"""

import random
import string
from collections.abc import Callable, Sequence
from typing import Any, Final

JSON = dict[str, Any]

#: The ends of what JSON, floats, 64 bits and exact floats can carry, and numbers around zero.
NUMBERS: Final = (
    *(0, -0.0, 1, -1, 0.1, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1e15, 1e15 + 1, -1e15 - 0.5),
    *(1e290, 1.1e290, 1e300, -1e300, 1e308, -1e308, 1.7e308, -1.7e308, 1.7976931348623157e308),
    *(2**31, 2**32, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, -(2**63), 2**64 - 1),
    *(9_999.99, 10_000, 253_402_300_799, 1e11, -6.2e10, 99_999_999_999_999_999),
)
#: Texts that trip readers, folders of case, sorters, indexes and terminals.
TEXTS: Final = (
    *("", " ", "x", "\t\n\r", "\x01\x1b[31m\x7f\x80\x9f", "\x1e\x1f", "\ufeff", "\u2028\u2029"),
    *("\uffff\ufffe", "\U0010ffff" * 8, "\u202etxt.exe", "\u200b\u200d\u00ad", "e" + "\u0301" * 60),
    *("\U0001f600\U0001f468\u200d\U0001f469", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627"),
    *("\u0130\u0131\u017f\u00df\u0149\ua7f7", "\ufb01\ufb02", "\uff21\uff11", "\u00b2\u00bd\u0663"),
    *("\u6f22\u5b57\u4eee\u540d", "\u0e01" + "\u0e47" * 20, "a" * 1024, "\U0001f600" * 1024, "\u00e9" * 1025),
    *("1" * 30, "9" * 1000, "1e400", "-1e400", "NaN", "Infinity", "0x10", "1_000", "1,234,567.89", "12,5"),
    *("' OR 1=1 --", '"\\', "%00%ff%s%n", "../../etc/passwd", "{{7*7}}", "<script>", "null", "true"),
    *("a@b.de", "@", "a@", "@b.de", "\u0130@\u00df.de", "a" * 300 + "@b.de", "a@" + "b." * 200 + "de"),
    *("1.2.3.4", "::1", "::ffff:1.2.3.4", "1.2.3.4/33", "fe80::1%eth0", "999.1.1.1", "2001:db8::/32"),
    *("DE", "de", "DEU", "XX", "D\u0308", "2026-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31"),
)
_SIGNAL_NUMBERS: Final = (
    *("mouseEntropy", "mouseMoves", "formSeconds", "timezoneOffset", "jumpCount", "interactionCount"),
    *("untrustedCount", "untrustedClickCount", "fillSeconds", "clickCount", "xCount"),
)
_SIGNAL_LISTS: Final = ("keystrokeIntervals", "keystrokeDwells", "keystrokeGaps", "pressDwells")
_SIGNAL_FLAGS: Final = (
    "paste",
    "touch",
    "webdriver",
    "headless",
    "honeypot",
    "emulator",
    "tampered",
    "rooted",
)
_FIELDS: Final = ("filled", "typed", "pasted", "autofilled", "inserted", "scripted", "silent")
_MOUSE: Final = (
    *("strokes", "turn", "deviation", "speedVariation", "speedSpread", "stepSpread", "timerVariation"),
)
_FRAUD_MEMBERS: Final = (
    *("amount", "currency", "merchantId", "terminalId", "cardHash", "paymentMethod", "channel", "outcome"),
    *("promoCode", "ipCountry", "ipAsn", "isVpn", "accountCreatedAt", "accountAgeDays", "isNewAccount"),
    *("success", "status", "sessionId", "location", "recipientId", "beneficiary", "price", "quantity"),
)
_AML_MEMBERS: Final = (
    *("amount", "currency", "direction", "accountId", "counterpartyId", "counterpartyName"),
    *("counterpartyCountry", "counterpartyAccount", "channel", "transactionType", "balanceAfter"),
    *("declaredMonthlyIncome", "accountOpenedAt", "segment", "description", "invoiceAmount"),
    *("marketValue", "instrumentId", "status", "city", "dateOfBirth", "customerName"),
)
_AMOUNTS: Final = (1, 12.5, 99.99, 500, 4_900, 9_500, 9_999, 12_000)


class Extremes:
    """Draws bodies. `wild` is the share of members that are extreme; the others are ordinary."""

    def __init__(self, rng: random.Random, wild: float = 0.3) -> None:
        self.rng = rng
        self.wild = wild

    def number(self) -> float:
        """Draw a number."""
        kind = self.rng.randrange(4)
        if kind == 0:
            return self.rng.uniform(-1, 1) * 10.0 ** self.rng.randint(-320, 307)
        if kind == 1:
            return self.rng.randint(-(2**63), 2**64 - 1)
        return self.rng.choice(NUMBERS)

    def text(self) -> str:
        """Draw a text."""
        if self.rng.random() < 0.7:
            return self.rng.choice(TEXTS)
        planes = (
            string.printable,
            "àéîõüñç",
            "אבגד",
            "漢字仮名",
            "😀🎉🏴",
            "\u0301\u0308\u200d",
            "\x01\x1f\x7f",
        )
        return "".join(self.rng.choice(self.rng.choice(planes)) for _ in range(self.rng.randrange(1, 40)))

    def value(self, depth: int = 0) -> Any:
        """Draw any value of JSON."""
        kind = self.rng.randrange(8 if depth < 3 else 6)
        if kind < 2:
            return self.number()
        if kind < 4:
            return self.text()
        if kind < 6:
            return self.rng.choice((None, True, False, [], {}))
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(4))]
        return {self.text() or "k": self.value(depth + 1) for _ in range(self.rng.randrange(4))}

    def or_wild(self, ordinary: Any, draw: Callable[[], Any] | None = None) -> Any:
        """Return the ordinary value, or now and then an extreme one."""
        return (draw or self.value)() if self.rng.random() < self.wild else ordinary

    def short(self, ordinary: str) -> str:
        """Draw a text that is short enough and not empty: an ordinary or an extreme one."""
        return self.or_wild(ordinary, self.text)[:1024] or ordinary

    def _some(self, names: Sequence[str], draw: Callable[[], Any], share: float = 0.4) -> JSON:
        return {name: draw() for name in names if self.rng.random() < share}

    def signals(self) -> JSON:
        """Draw what a page measures."""
        rng, numbers = self.rng, self.or_wild
        found = self._some(_SIGNAL_NUMBERS, lambda: numbers(rng.randrange(100), self.number))
        found |= self._some(
            _SIGNAL_LISTS,
            lambda: [numbers(rng.uniform(20, 300), self.number) for _ in range(rng.randrange(12))],
        )
        found |= self._some(_SIGNAL_FLAGS, lambda: self.or_wild(rng.random() < 0.5))
        found["fields"] = self._some(_FIELDS, lambda: numbers(rng.randrange(5), self.number))
        found["mouse"] = self._some(_MOUSE, lambda: numbers(rng.random(), self.number))
        found |= self._some(("fingerprint", "acceptLanguage"), self.text)
        found |= self._some(("languages",), lambda: [self.text()])
        return {name: value for name, value in found.items() if rng.random() > 0.05 * self.wild or not value}

    def customer(self) -> JSON:
        """Draw whom an event is about."""
        number = self.rng.randrange(12)
        return {
            "externalId": self.short(f"c-{number}"),
            "email": self.short(f"person.{number}@mail.example"),
            "metadata": self._some(
                ("createdAt", "accountAgeDays", "segment", "dateOfBirth", "firstName", "nationality"),
                self.value,
                0.2,
            ),
        }

    def event(self, now_s: float) -> JSON:
        """Draw an event that the fraud pipeline accepts, but for what its bounds refuse."""
        rng = self.rng
        metadata = self._some(_FRAUD_MEMBERS, lambda: self.value() if rng.random() < self.wild else "a")
        metadata["amount"] = self.or_wild(rng.choice(_AMOUNTS), self.number)
        body: JSON = {
            "eventName": self.short(rng.choice(("payment.attempt", "user.login_failed", "user.login", "x"))),
            "eventCategory": rng.choice(("AUTHENTICATION", "TRANSACTION", "ACCOUNT", "OTHER")),
            "customer": self.customer(),
            "device": {"fingerprint": self.short(f"fp-{rng.randrange(6)}"), "externalId": self.short("d")},
            "ip": self.short(f"203.0.113.{rng.randrange(9)}"),
            "userAgent": self.short("Mozilla/5.0"),
            "country": self.short("DE"),
            "sessionId": self.short(f"session-{rng.randrange(4)}"),
            "location": self.or_wild({"latitude": rng.uniform(-90, 90), "longitude": rng.uniform(-180, 180)}),
            "metadata": metadata,
            "custom_fields": self._some(("a", "b", self.text() or "c"), self.value),
            "sdkSignals": self.signals(),
        }
        if rng.random() < 0.5:
            body["occurredAt"] = now_s - rng.randrange(100_000)
        return body

    def aml_event(self, number: int, now_s: float) -> JSON:
        """Draw an event that the AML pipeline accepts, but for what its bounds refuse."""
        rng = self.rng
        metadata = self._some(_AML_MEMBERS, lambda: self.value() if rng.random() < self.wild else "a", 0.2)
        metadata |= {
            "amount": self.or_wild(rng.choice(_AMOUNTS), self.number),
            "direction": rng.choice(("in", "out")),
            "accountId": self.short(f"acc-{rng.randrange(8)}"),
            "counterpartyId": self.short(f"c-{rng.randrange(12)}"),
            "channel": rng.choice(("cash", "wire", "card", "web")),
        }
        return {
            "eventName": self.short("transfer.sent"),
            "externalEventId": f"{number}-{self.short('tx')}"[:1024],
            "eventCategory": "TRANSACTION",
            "customer": self.customer(),
            "sourceReportedAt": now_s - rng.randrange(1_000_000),
            "reference": self.short("ref"),
            "location": self.or_wild({"city": "Berlin"}, lambda: {"city": self.text(), "lat": self.number()}),
            "metadata": metadata,
            "custom_fields": self._some(("a", "b"), self.value),
        }

    def batch(self, number: int, session: str, now_s: float) -> JSON:
        """Draw a batch of signals of a session."""
        return {
            "schemaVersion": "websdk.v1",
            "batchId": f"{number}-{self.short('b')}"[:1024],
            "sentAt": int(now_s * 1000),
            "sdkSessionId": session,
            "anonymousId": self.short("anon"),
            "page": {"url": self.short("https://shop.example/")},
            "signals": self.signals(),
        }

    def collect(self, session: str) -> JSON:
        """Draw a page's question about a session."""
        return {
            "sessionId": session,
            "category": self.rng.choice(("AUTHENTICATION", "TRANSACTION", "OTHER")),
            "customerId": self.short("c-1"),
            "deviceId": self.short("d-1"),
            "payload": self._some(("eventName", "amount", "currency", "outcome"), self.value),
            "sdkSignals": self.signals(),
        }

    def entry(self) -> JSON:
        """Draw an entry of an allow or block list."""
        kind = self.rng.choice(("email", "device", "ip"))
        ordinary = {"email": "bad@mail.example", "device": "fp-9", "ip": "198.51.100.0/24"}[kind]
        return {
            "type": kind,
            "listType": self.rng.choice(("allow", "block")),
            "value": self.short(ordinary),
            "reason": self.short("why"),
            "expiresAt": self.or_wild(None),
        }

    def screening(self, number: int) -> JSON:
        """Draw a name to be held against the watchlists."""
        return {
            "externalId": f"{number}",
            "inputName": self.short("Ivan Petrov")[:200],
            "inputDob": self.or_wild("1970-01-01", self.text),
            "inputAliases": [self.short("Vanya") for _ in range(self.rng.randrange(3))],
            "inputIdDocuments": [{"type": self.short("passport"), "value": self.short("X1")}],
        }

    def feedback(self) -> JSON:
        """Draw what an analyst says of an event."""
        labels = ("FRAUD", "LEGIT", "CHARGEBACK", "REFUND")
        return {
            "label": self.or_wild(self.rng.choice(labels), self.text),
            "notes": self.text(),
            "externalCaseId": self.text(),
        }

    def spoil(self, body: JSON) -> JSON:
        """Return a body with one member lacking, of another type, or nested where a value stood."""
        spoilt, rng = dict(body), self.rng
        name = rng.choice([*spoilt])
        kind = rng.randrange(3)
        if kind == 0:
            del spoilt[name]
        elif kind == 1:
            spoilt[name] = self.value()
        elif isinstance(spoilt[name], dict):
            spoilt[name] = {**spoilt[name], self.text() or "k": self.value(), "metadata": self.value()}
        else:
            spoilt[self.text() or "k"] = self.value()
        return spoilt
