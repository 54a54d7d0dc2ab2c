"""Values that rules read, in plain words: what an aggregate counted, of whom, and in how much time."""

import ast
import functools
from collections.abc import Mapping
from typing import Final

from vettance.aml.condition_words import condition_in_words, name_in_words
from vettance.rules.novelty import EVERYTHING
from vettance.rules.parse import parse_expression

#: What people call a value, and several of it; others are called as they are written.
_THINGS: Final = {
    "customer.key": ("customer", "customers"),
    "customer.external_id": ("customer", "customers"),
    "device.key": ("device", "devices"),
    "merchant.key": ("merchant", "merchants"),
    "ip": ("address", "addresses"),
    "ip.prefix": ("network", "networks"),
    "country": ("country", "countries"),
    "session_id": ("session", "sessions"),
    "user_agent": ("user agent", "user agents"),
    "user_agent.client": ("browser", "browsers"),
    "user_agent.system": ("system", "systems"),
    "email.mailbox": ("mailbox", "mailboxes"),
    "metadata.amount": ("amount", "amounts"),
    "metadata.cardHash": ("card", "cards"),
    "worth": ("amount", "amounts"),
    "event.kind": ("kind of event", "kinds of event"),
    "party": ("party", "parties"),
    "sender": ("sender", "senders"),
    "receiver": ("receiver", "receivers"),
    "counterparty.key": ("counterparty", "counterparties"),
    "account.id": ("account", "accounts"),
    "place": ("place", "places"),
}
#: Events that a condition picks, as one of them and as several.
_EVENTS: Final = {
    "event.login_failed": ("failed login", "failed logins"),
    "event.logged_in": ("login", "logins"),
    "event.spends": ("payment", "payments"),
    "event.payment_failed": ("failed payment", "failed payments"),
    "event.changes_credentials": ("change of credentials", "changes of credentials"),
    "event.kind == 'signup'": ("sign-up", "sign-ups"),
    "event.kind == 'promo'": ("promotion", "promotions"),
    "event.kind == 'refund'": ("refund", "refunds"),
    "event.kind == 'refund' and event.outcome == 'unknown'": (
        "request for a refund",
        "requests for a refund",
    ),
    "event.kind == 'refund' and event.outcome == 'success'": (
        "refund that was paid",
        "refunds that were paid",
    ),
    "event.kind == 'mfa'": ("second-factor prompt", "second-factor prompts"),
    "event.kind == 'card_added'": ("card that was added", "cards that were added"),
    "adds_instrument": ("new instrument", "new instruments"),
}
#: How each aggregate is said: what, of whom, within what time, counting which events.
_PATTERNS: Final = {
    "count": "{events}{whose}{window}{which}",
    "first_seen": "seconds since the first {event}{whose}{window}{which}",
    "last_seen": "seconds since the last {event}{whose}{window}{which}",
    "distinct": "different {several}{whose}{window}{which}",
    "seen": "known {one}{whose}{window}{which}",
    "sum": "sum of {several}{whose}{window}{which}",
    "avg": "mean {one}{whose}{window}{which}",
    "min": "smallest {one}{whose}{window}{which}",
    "max": "largest {one}{whose}{window}{which}",
    "last": "last {one}{whose}{window}{which}",
    "frauds": "events{whose} labelled as fraud{window}",
    "legits": "events{whose} labelled as legitimate{window}",
    "first_fraud": "seconds since the first fraud{whose}{window}",
    "last_fraud": "seconds since the last fraud{whose}{window}",
}
#: Those that take a value; `count` and its like take the condition that others have as `where`.
_OF_VALUES: Final = ("distinct", "seen", "sum", "avg", "min", "max", "last")
_EVENT: Final = ("event", "events")
_UNITS: Final = {"s": ("s", "s"), "m": ("min", "min"), "h": ("h", "h"), "d": ("day", "days")}


@functools.lru_cache(maxsize=4_096)
def value_in_words(name: str) -> str | None:
    """Return what the value of an aggregate says; None for other names, and for what has no plain words.

    `distinct(customer.key, by=ip, within="1h", where=event.login_failed)` is "different customers of the
    address within 1 h, counting failed logins".
    """
    try:
        call = parse_expression(name)
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    return _said(call.func.id, call.args, {one.arg: one.value for one in call.keywords})


def _said(kind: str, args: list[ast.expr], given: Mapping[str | None, ast.expr]) -> str | None:
    """Say an aggregate; None for what has other parts than these words tell of."""
    pattern, of_values, by = _PATTERNS.get(kind), kind in _OF_VALUES, given.get("by")
    told = {"by", "within", "where"} if of_values else {"by", "within"}
    window = _window(given.get("within"))
    if pattern is None or by is None or window is None or given.keys() - told or len(args) > 1:
        return None
    first = args[0] if args else None
    condition = given.get("where") if of_values else first
    whose, among = [_one_of(part) for part in _parts(by)], [_among(part, condition) for part in _parts(by)]
    if None in among or (of_values and first is None):
        return None
    (event, events), which = _events(condition)
    which = ", ".join(filter(None, (which, *among)))
    if of_values and (condition is not None or which):
        which = f", counting {events}{' ' if which else ''}{which}"
    one, several = _thing(first) if of_values and first is not None else _EVENT
    return pattern.format(
        event=event,
        events=events,
        which=which if of_values or not which else f", {which}",
        one=one,
        several=several,
        whose=f" of {' and '.join(whose)}",
        window=window,
    )


def _parts(by: ast.expr) -> list[ast.expr]:
    return by.elts if isinstance(by, ast.Tuple) else [by]


def _one_of(node: ast.expr) -> str:
    """Return of whom is counted."""
    if isinstance(node, ast.IfExp):
        return _one_of(node.body)
    if isinstance(node, ast.Constant):
        # What `novelty` compares with is counted apart from what a rule counts over all by a key of its own.
        return "everybody" if node.value == EVERYTHING.value else "all together"
    return f"the {_thing(node)[0]}"


def _among(node: ast.expr, condition: ast.expr | None) -> str | None:
    """Return which events alone are counted by it, unless `condition` says so already; None without words."""
    if not isinstance(node, ast.IfExp):
        return ""
    if not isinstance(node.orelse, ast.Constant) or node.orelse.value != "":
        return None  # What is empty is not counted; anything else is.
    said = "" if condition is None else ast.unparse(condition)
    match node.test:
        case ast.BoolOp(ast.Or(), kinds) if said in map(ast.unparse, kinds):
            return ""
    if said == ast.unparse(node.test):
        return ""
    text = ast.unparse(node.test)
    return None if text in _EVENTS else condition_in_words(text)


def _thing(node: ast.expr) -> tuple[str, str]:
    """Return what people call a value, and several of it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "default":
        return _thing(node.args[0])
    text = ast.unparse(node)
    if text in _THINGS:
        return _THINGS[text]
    called = name_in_words(text.removeprefix("metadata.")) if _is_name(node) else text
    return called, f"values of {called}"


def _events(condition: ast.expr | None) -> tuple[tuple[str, str], str]:
    """Return what events are called that meet a condition, one and several, and what is said behind that."""
    if condition is None:
        return _EVENT, ""
    text = ast.unparse(condition)
    if text in _EVENTS:
        return _EVENTS[text], ""
    return _EVENT, condition_in_words(text)


def _window(within: ast.expr | None) -> str | None:
    """Say the window; nothing where the aggregate has none, None for one that cannot be read."""
    if within is None:
        return ""
    text = within.value if isinstance(within, ast.Constant) else None
    if not isinstance(text, str) or text[-1:] not in _UNITS or not text[:-1].isdigit():
        return None
    one, several = _UNITS[text[-1]]
    return f" within {text[:-1]} {one if text[:-1] == '1' else several}"


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_name(node.value))
