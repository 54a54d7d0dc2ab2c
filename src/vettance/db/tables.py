"""Tables: every table of the store, and what a statement declares of those it touches."""

import functools
from typing import Final


class Tables:
    """The tables of a statement: those that it may change, and those that it only reads.

    Made once, when a module is loaded, and compared by identity. Statements commute unless one of them may
    change what another one touches. `long` names the columns that PostgreSQL looks for by their digests.
    `listeners` is the table without whose rows of its tenant a statement changes nothing, if there is one.
    """

    __slots__ = ("changed", "listeners", "long", "read")

    def __init__(
        self, changed: frozenset[str], read: frozenset[str], long: frozenset[str], listeners: str = ""
    ) -> None:
        self.changed = changed
        self.read = read
        self.long = long
        self.listeners = listeners

    @property
    def touched(self) -> frozenset[str]:
        """All tables, changed or read."""
        return self.changed | self.read

    @functools.cache  # noqa: B019 - there are as many as the source has declarations, and all live for ever
    def reading(self, *others: "Tables") -> "Tables":
        """Return these tables for a statement that reads others as well, in a join or in a condition."""
        read = self.read.union(*[other.touched for other in others])
        return Tables(self.changed, read, self.long.union(*[other.long for other in others]))

    @functools.cache  # noqa: B019 - as above
    def heard_by(self, listeners: "Table") -> "Tables":
        """Return these tables for a statement that changes nothing where its tenant has no row of another.

        Its first argument is the tenant. PostgreSQL looks for such a row once for all that a batch holds.
        """
        both = self.reading(listeners)
        return Tables(both.changed, both.read, both.long, listeners.name)


class Table(Tables):
    """One table.

    A change of it reads the tables `reads` through a reference, a trigger or the policy of its rows, and its
    triggers keep `counts`. Columns in `long` may hold texts that are longer than an index row of PostgreSQL,
    which is 2,704 bytes: there they are looked for by their digests, in columns of their own.
    """

    __slots__ = ("name",)

    def __init__(self, name: str, *, reads: "Table | None" = None, counts: str = "", long: str = "") -> None:
        read = reads.touched if reads is not None else frozenset[str]()
        super().__init__(frozenset({name, *counts.split()}), read, frozenset(long.split()))
        self.name = name

    def __str__(self) -> str:
        return self.name


class RowInsert(Tables):
    """What a writer has to know of an insert of rows whose values are all given as arguments.

    `text` inserts one row, of `width` arguments. `certain` says whether as many rows change as are given.
    """

    __slots__ = ("certain", "table", "text", "width")

    def __init__(self, tables: Tables, table: str, text: str, width: int, *, certain: bool) -> None:
        super().__init__(tables.changed, tables.read, tables.long)
        self.table = table
        self.text = text
        self.width = width
        self.certain = certain


class Insert(RowInsert):
    """An insert of rows whose values are all given as arguments.

    `columns` are separated by commas. Where a row of the same `key` is there already, the columns in `adds`
    are added to it, those in `replaces` replaced, and `sets` assigned (as SQL); with none of them, the insert
    leaves that row as it is. Without a `key` it is a `Clash`.
    """

    __slots__ = ("_row", "head", "key", "starts_with_tenant", "tail")

    def __init__(
        self, table: Table, columns: str, *, key: str = "", adds: str = "", replaces: str = "", sets: str = ""
    ) -> None:
        names, keys, sums = _names(columns), _names(key), _names(adds)
        self.starts_with_tenant = names[0] == "tenant"
        self.head = f"INSERT INTO {table} ({', '.join(names)})"
        changes = [f"{name} = excluded.{name}" for name in _names(replaces)]
        changes += [f"{name} = {table}.{name} + excluded.{name}" for name in sums]
        changes += [sets] if sets else []
        #: What follows the rows.
        self.tail = _on_conflict(keys, changes)
        adds_all = bool(sums) and {*names} == {*keys, *sums} and len(changes) == len(sums)
        #: The places of the key in a row, where an insert adds up everything else: rows of one key make one.
        self.key = tuple(map(names.index, keys)) if adds_all else ()
        self._row = f"({', '.join('?' * len(names))})"
        text = f"{self.head} VALUES {self._row}{self.tail}"
        super().__init__(table, table.name, text, len(names), certain=bool(changes) or not keys)

    def text_of(self, args: int) -> str:
        """Return the insert of as many rows as so many arguments make, where it is sent as such a text."""
        if args == self.width or self.certain:
            return self.text
        # Not kept: there would be one for each number of rows, of kilobytes.
        return f"{self.head} VALUES {', '.join([self._row] * (args // self.width))}{self.tail}"


def _names(columns: str) -> list[str]:
    return [name.strip() for name in columns.split(",")] if columns else []


def _on_conflict(keys: list[str], changes: list[str]) -> str:
    if not keys:
        return ""
    action = f"UPDATE SET {', '.join(changes)}" if changes else "NOTHING"
    return f" ON CONFLICT ({', '.join(keys)}) DO {action}"


#: No table of ours, only what the store knows of itself.
CATALOG: Final = Tables(frozenset(), frozenset(), frozenset())

TENANT: Final = Table("tenant")
API_KEY: Final = Table("api_key", reads=TENANT)
CHANGE: Final = Table("change")
DEPLOYMENT: Final = Table("deployment")
FAILING_WORK: Final = Table("failing_work")
QUOTA_USE: Final = Table("quota_use")
ANSWER: Final = Table("answer")

USER_ACCOUNT: Final = Table("user_account")
USER_MEMBERSHIP: Final = Table("user_membership")
ENTRY_LINK: Final = Table("entry_link")
CONSOLE_SESSION: Final = Table("console_session")
SIGN_IN_FAILURE: Final = Table("sign_in_failure")
KNOWN_ADDRESS: Final = Table("known_address")
RECOVERY_CODE: Final = Table("recovery_code")

AUDIT_HEAD: Final = Table("audit_head")
AUDIT_ENTRY: Final = Table("audit_entry")
AUDIT_PART: Final = Table("audit_part")

LIST_ENTRY: Final = Table("list_entry", counts="list_count")
LIST_COUNT: Final = Table("list_count")
RULESET: Final = Table("ruleset")
RULE_STEP: Final = Table("rule_step")
EVENT: Final = Table("event")
DECISION: Final = Table("decision")
FEEDBACK: Final = Table("feedback")
LABEL: Final = Table("label")
REVIEW: Final = Table("review", counts="review_count")
REVIEW_COUNT: Final = Table("review_count")
REVIEW_BULK: Final = Table("review_bulk")
REVIEW_BULK_PIECE: Final = Table("review_bulk_piece")
BACKTEST: Final = Table("backtest")
SNOOZE: Final = Table("snooze")
MODEL: Final = Table("model")
MODEL_SETTING: Final = Table("model_setting")
MODEL_CHANGE: Final = Table("model_change")
MODEL_DRIFT: Final = Table("model_drift")
FEATURE_VERSION: Final = Table("feature_version")
ALERT_MODEL: Final = Table("alert_model")
ALERT_MODEL_SETTING: Final = Table("alert_model_setting")
RULE_COUNT: Final = Table("rule_count")
RULE_COUNTED: Final = Table("rule_counted")
RULE_LAST_HIT: Final = Table("rule_last_hit")
JOB: Final = Table("job")
IMPORT_RUN: Final = Table("import_run")
IMPORT_MARK: Final = Table("import_mark")
STREAM_CONSUMER: Final = Table("stream_consumer")
STREAM_MESSAGE: Final = Table("stream_message")
TOKEN_KEY: Final = Table("token_key")
SIGNAL_BATCH: Final = Table("signal_batch", long="sdk_session batch_id")

MESSAGE: Final = Table("message")
DELIVERY: Final = Table("delivery")
ATTEMPT: Final = Table("attempt", reads=DELIVERY)
SUBSCRIPTION: Final = Table("subscription")
INTEREST: Final = Table("interest", reads=SUBSCRIPTION)

ROLLUP: Final = Table("rollup")
TERM: Final = Table("term", long="value")
TERM_EPOCH: Final = Table("term_epoch")
TERM_SEARCH: Final = Table("term_search")
ID_SEARCH: Final = Table("id_search")
CHUNK: Final = Table("chunk")
CHUNK_COLUMN: Final = Table("chunk_column", reads=CHUNK)
ROSTER: Final = Table("roster")

WATCHLIST_VERSION: Final = Table("watchlist_version")
WATCHLIST_INDEX: Final = Table("watchlist_index")
AML_RULESET: Final = Table("aml_ruleset")
AML_SETTING: Final = Table("aml_setting")
AML_EVENT: Final = Table("aml_event", long="external_id")
AML_CASE: Final = Table("aml_case", counts="aml_case_count", long="customer")
AML_CASE_COUNT: Final = Table("aml_case_count")
AML_CASE_ENTRY: Final = Table("aml_case_entry")
AML_ALERT: Final = Table("aml_alert", counts="aml_alert_count", long="customer")
AML_ALERT_COUNT: Final = Table("aml_alert_count")
AML_ALERT_EVENT: Final = Table("aml_alert_event")
AML_RULE_COUNT: Final = Table("aml_rule_count")
AML_RULE_COUNTED: Final = Table("aml_rule_counted")
AML_RULE_LAST_HIT: Final = Table("aml_rule_last_hit")
AML_ALERT_ENTITY: Final = Table("aml_alert_entity", reads=AML_ALERT, long="customer")
AML_SCREENING: Final = Table("aml_screening", long="external_id")
AML_SCREENING_SETTING: Final = Table("aml_screening_setting")
AML_LIST_SET: Final = Table("aml_list_set")
AML_SUBJECT: Final = Table("aml_subject")
AML_RESCREENING: Final = Table("aml_rescreening")

#: Every table by its name.
TABLES: Final = {one.name: one for one in [*globals().values()] if isinstance(one, Table)}


def table_of(name: str) -> Table:
    """Return a table by its name, also one that only a newer version declares."""
    return TABLES.get(name) or Table(name)


#: Tables whose rows nobody follows in an order or counts: a write that changes no other waits for no turn.
UNFOLLOWED: Final = TERM.changed | TERM_SEARCH.changed | ID_SEARCH.changed
