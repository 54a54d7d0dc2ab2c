"""Every column of the store that can hold a text, and what an erasure does there.

A test compares these tables with the schema, so a new column is listed here with what becomes of it.
"""

from typing import Final, NamedTuple

from vettance.decisions.searchable_fields import COLUMNS

#: Keys that count; all others are texts.
_NUMBERS: Final = frozenset({"seq", "delivery", "number"})


class TextColumns(NamedTuple):
    """Columns of a table that may name a customer, by the keys of its rows.

    Rows are read in the order of these keys, by an index that begins with the tenant where there is one.
    """

    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    has_numbers: bool = False

    @property
    def start(self) -> tuple[int | str, ...]:
        """A key that sorts before those of every row."""
        return tuple(-1 if self.has_numbers or key in _NUMBERS else "" for key in self.keys)


class RetainedRecords(NamedTuple):
    """Records that stay unless they are asked for by `option` (never without one), and why."""

    what: str
    why: str
    place: TextColumns
    option: str | None = None


#: Read with the deliveries of the tenant, since they have no column of it.
ATTEMPTS: Final = TextColumns("attempt", ("delivery", "number"), ("answer",))
DELIVERIES: Final = TextColumns("delivery", ("seq",), ("seq",))
#: Rewritten by every erasure. Events and decisions are too, by `erase.py`, and the answers kept for retries.
REWRITTEN: Final = (
    TextColumns("feedback", ("target", "id"), ("notes", "external_case_id")),
    TextColumns("list_entry", ("id",), ("reason",)),
    # `request_id` is the caller's own `X-Request-Id`.
    TextColumns("job", ("seq",), ("sent", "error", "request_id")),
    TextColumns("delivery", ("seq",), ("body",)),
    TextColumns("message", ("id",), ("body",)),
    ATTEMPTS,
    TextColumns("signal_batch", ("seq",), ("signals", "tenant_session", "sdk_session", "batch_id")),
    TextColumns("subscription", ("id",), ("last_error",)),
    # Those of the customer's own events go; a note on another may name them.
    TextColumns("review", ("decision",), ("note", "customer", "email")),
    TextColumns("review_bulk", ("id",), ("note", "chosen")),
    TextColumns("snooze", ("id",), ("value", "reason")),
)
ANSWERS: Final = TextColumns("answer", ("path", "key"), ("content", "headers"))
#: Removed, not rewritten, where they are asked for: an entry of a list works by its value alone, and the
#: store counts cases by their officer itself.
ENTRIES: Final = TextColumns("list_entry", ("id",), ("value",))
COUNTS: Final = TextColumns("aml_case_count", ("state", "severity", "assignee"), ("assignee",))
AML_EVENTS: Final = TextColumns("aml_event", ("seq",), ("external_id", "sent", "record", "alerts"))

AML: Final = "aml"
LISTS: Final = "lists"
#: What `vettance customer erase --also` takes.
OPTIONS: Final = (AML, LISTS)

_LAW: Final = (
    "the law against money laundering has them kept, in the EU for five years after the relationship ends "
    "(Directive (EU) 2015/849, Article 40; GDPR, Article 17(3)(b)); --also aml rewrites them too"
)
OWN_WORDS: Final = "it is the tenant's own configuration, which works by these words; change it there"

_TEXTS_OF_FEATURES: Final = ("document", "features", "changes", "note", "author")
_TEXTS_OF_RULES: Final = ("document", "note", "pushed", "author", "approved_by", "broken_glass")

KEPT: Final = (
    RetainedRecords("AML events", _LAW, AML_EVENTS, AML),
    RetainedRecords(
        "AML cases",
        _LAW,
        TextColumns("aml_case", ("id",), ("customer", "assignee", "proposed_by", "resolved_by")),
        AML,
    ),
    RetainedRecords(
        "AML alerts",
        _LAW,
        TextColumns("aml_alert", ("id",), ("customer", "summary", "figures", "subject")),
        AML,
    ),
    RetainedRecords(
        "notes of AML cases", _LAW, TextColumns("aml_case_entry", ("seq",), ("text", "actor")), AML
    ),
    RetainedRecords(
        "screenings", _LAW, TextColumns("aml_screening", ("seq",), ("external_id", "sent", "answer")), AML
    ),
    RetainedRecords(
        "links of AML alerts to listed entities",
        _LAW,
        TextColumns("aml_alert_entity", ("alert", "entity"), ("customer", "role")),
        AML,
    ),
    RetainedRecords(
        "subjects screened again",
        _LAW,
        TextColumns("aml_subject", ("external_id", "role"), ("external_id", "role", "sent")),
        AML,
    ),
    RetainedRecords("counts of AML cases by officer", _LAW, COUNTS, AML),
    RetainedRecords(
        "entries of the allow and block lists",
        "a list works only by the value itself, and keeps fraud away for as long as it is there; "
        "--also lists removes them",
        ENTRIES,
        LISTS,
    ),
    RetainedRecords("names of the tenant", OWN_WORDS, TextColumns("tenant", ("id",), ("name", "settings"))),
    RetainedRecords("names of API keys", OWN_WORDS, TextColumns("api_key", ("id",), ("name",))),
    RetainedRecords(
        "rule sets", OWN_WORDS, TextColumns("ruleset", ("version",), _TEXTS_OF_RULES, has_numbers=True)
    ),
    RetainedRecords(
        "AML rule sets",
        OWN_WORDS,
        TextColumns("aml_ruleset", ("version",), _TEXTS_OF_RULES, has_numbers=True),
    ),
    RetainedRecords("backtests", OWN_WORDS, TextColumns("backtest", ("id",), ("ask", "result", "error"))),
    RetainedRecords("steps with rule sets", OWN_WORDS, TextColumns("rule_step", ("id",), ("actor", "note"))),
    RetainedRecords(
        "changes of models", OWN_WORDS, TextColumns("model_change", ("id",), ("note", "broken_glass"))
    ),
    RetainedRecords(
        "feature sets",
        OWN_WORDS,
        TextColumns("feature_version", ("version",), _TEXTS_OF_FEATURES, has_numbers=True),
    ),
    RetainedRecords("names of streams", OWN_WORDS, TextColumns("stream_consumer", ("name",), ("name",))),
    RetainedRecords("streams of messages", OWN_WORDS, TextColumns("stream_message", ("seq",), ("consumer",))),
    RetainedRecords("URLs of webhooks", OWN_WORDS, TextColumns("subscription", ("id",), ("url",))),
    RetainedRecords(
        "own watchlists",
        OWN_WORDS,
        TextColumns("watchlist_version", ("source", "version"), ("files",)),
    ),
)

#: Where else than in events a customer is named as such: by these columns as a whole.
CUSTOMERS: Final = (
    TextColumns("review", ("decision",), ("customer", "email")),
    TextColumns("aml_case", ("id",), ("customer",)),
    TextColumns("aml_alert", ("id",), ("customer",)),
    TextColumns("aml_screening", ("seq",), ("external_id",)),
    TextColumns("aml_subject", ("external_id", "role"), ("external_id",)),
    ENTRIES,
)

#: Rewritten by `erasure.py` and `segment_rewrite.py`, each in a way of its own. Every searchable field may
#: name the customer: it holds what was sent, right or wrong.
LOG: Final = {
    "decision": (*COLUMNS, "record"),
    "event": ("sent", "signals"),
    "term": ("value", "folded"),
    # Of texts in the indexes of searches the store keeps parts, which go with the terms.
    "term_search": ("value",),
}

#: Rewritten by `replace_names` of the audit log, which keeps its chain.
AUDIT: Final = {"audit_part": ("content",)}

#: About the people who use the console: they are no customers, and an erasure leaves them alone.
STAFF: Final = {
    "console_session": ("address", "user_agent"),
    "user_account": ("email", "name", "oidc_issuer", "oidc_subject"),
}
