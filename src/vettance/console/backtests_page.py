"""Backtests: rules tried on past events, ordered, watched, and each event they would answer otherwise."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.backtests.backtest_job import BACKTEST_PREFIX, BacktestJob, BacktestOrder
from vettance.backtests.sql import job_of, select_backtest, select_newest
from vettance.clock import DAY_MS
from vettance.console.job_words import JOB_STATES
from vettance.console.page import (
    QUEUE_READERS,
    ConsolePage,
    PageAnswer,
    View,
    Visit,
    segment,
    url_of,
)
from vettance.console.rule_place import AML, EDITORS, FRAUD, RULE_READERS, RulePlace
from vettance.console.rules_page import rules_in
from vettance.console.svg_charts import ChartPoint, time_series
from vettance.console.words import Words
from vettance.errors import NotFound, Unprocessable
from vettance.rules.difference import change_lines, diff
from vettance.wire.numbers import is_decimal
from vettance.wire.payload import timestamp

#: Of both kinds of rules together.
_LISTED: Final = 20
_UNDER_WAY: Final = ("queued", "running")
_VERSION_DIGITS: Final = 10
_LINES_SHOWN: Final = 60
_SPANS: Final = (
    ("7", Words("the last 7 days")),
    ("30", Words("the last 30 days")),
    ("90", Words("the last 90 days")),
    ("", Words("all time")),
)
#: The groups of events in results, and the answers that are counted, by the kind of rules.
_GROUPS: Final = {
    "fraud": {
        "all": Words("All"),
        "fraud": Words("Labelled fraud"),
        "legit": Words("Labelled legitimate"),
    },
    "aml": {
        "all": Words("All"),
        "true": Words("True matches"),
        "false": Words("False positives"),
    },
}
_ANSWERS: Final = {"fraud": ("approve", "review", "deny"), "aml": ("clear", "alerted")}


class BacktestRow(NamedTuple):
    """A backtest as the list shows it."""

    job: BacktestJob
    words: str
    url: str


class FlippedEvent(NamedTuple):
    """An event that would be answered otherwise; `url` is its page, empty for those who may not see it."""

    said: Mapping[str, Any]
    url: str
    rules_was: Sequence[tuple[str, str]] = ()
    rules_now: Sequence[tuple[str, str]] = ()


class BacktestPages:
    """The pages of the backtests of one kind of rules."""

    def __init__(self, place: RulePlace) -> None:
        self._place = place
        self._path = f"{place.path}/backtests"

    async def newest(self, visit: Visit) -> PageAnswer:
        """GET: the newest backtests, and the form of another one."""
        rows = await visit.parts.store.read(select_newest(visit.tenant.id, BACKTEST_PREFIX, _LISTED))
        # Asked for the product's sake, and for the number of the version in force.
        active = await visit.ask("GET", f"{self._place.api}/active")
        found = [one for row in rows if (one := self._row(job_of(row))) is not None]
        values = {
            "place": self._place,
            "rows": found,
            "under_way": any(one.job.state.value in _UNDER_WAY for one in found),
            "job_states": JOB_STATES,
            "version": active["version"],
            "spans": _SPANS,
            "may_write": visit.may(*EDITORS),
        }
        return View("backtests.html", values, Words("Backtests"))

    def _row(self, job: BacktestJob) -> BacktestRow | None:
        """Return a job for the list; None for one of the other kind, or whose order cannot be read."""
        order = _order_of(job)
        if order is None or order.kind != self._place.kind:
            return None
        return BacktestRow(job, _words(order), f"{self._path}/{job.id}")

    async def order(self, visit: Visit) -> PageAnswer:
        """POST: order one of a version."""
        form = visit.form
        days, share, version = form.get("days"), form.get("sample"), form.get("version")
        is_number = version.isascii() and version.isdigit() and len(version) <= _VERSION_DIGITS
        body: dict[str, Any] = {"version": int(version) if is_number else version}
        if days in ("7", "30", "90"):
            body["from"] = timestamp(visit.now_ms - int(days) * DAY_MS)
        if share:
            body["sample"] = float(share) / 100 if is_decimal(share) else share
        try:
            made = await visit.ask("POST", self._place.backtests, body=body)
        except NotFound:
            raise Unprocessable(
                "Nothing was tried.", {"version": "must be the number of a version of these rules"}
            ) from None
        return visit.redirect(f"{self._path}/{made['backtestId']}")

    async def show(self, visit: Visit) -> PageAnswer:
        """GET: how far a backtest is, and what it found."""
        place, backtest = self._place, visit.path["backtest"]
        one = await visit.ask("GET", f"{place.backtests}/{backtest}")
        result = one["result"]
        values: dict[str, Any] = {
            "place": place,
            "path": f"{self._path}/{backtest}",
            "one": one,
            "job_states": JOB_STATES,
            "under_way": one["state"] in _UNDER_WAY,
            "result": result,
            "may_write": visit.may(*EDITORS),
            **await self._tried(visit, backtest),
        }
        if result is not None:
            values |= self._found(visit, result, values["path"])
        return View("backtest.html", values, Words("Backtest"))

    async def _tried(self, visit: Visit, backtest: str) -> dict[str, Any]:
        """Return what was ordered: its words, its span, and what differs from the rules in force."""
        rows = await visit.parts.store.read(select_backtest(visit.tenant.id, backtest))
        order = _order_of(job_of(rows[0])) if rows else None
        if order is None:
            return {"words": "", "order": None, "lines": ()}
        active = await visit.ask("GET", f"{self._place.api}/active")
        old, new = await rules_in(active["resolved"]), await rules_in(order.document)
        lines = change_lines(diff(old, new))
        more = len(lines) - _LINES_SHOWN
        return {
            "words": _words(order),
            "order": order,
            "from_ms": order.from_ms or None,
            "version": active["version"],
            "lines": [
                *lines[:_LINES_SHOWN],
                *([f"… and {visit.show.count(more, 'line more')}"] if more > 0 else []),
            ],
        }

    def _found(self, visit: Visit, result: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the parts of a result: flips that the address asks for, rules that fired, days."""
        samples = result["flips"]["samples"]
        asked = visit.query.get("flip")
        counted: dict[str, int] = {}
        for one in samples:
            word = f"{one['was']}-{one['now']}"
            counted[word] = counted.get(word, 0) + 1
        fired = [one for one in result["rules"] if one["fired"]]
        return {
            "groups": _GROUPS[self._place.kind],
            "answers": _ANSWERS[self._place.kind],
            "flips": [
                self._flip(visit, one)
                for one in samples
                if not asked or asked == f"{one['was']}-{one['now']}"
            ],
            "ways": [
                (*word.split("-"), count, url_of(path, flip=word)) for word, count in sorted(counted.items())
            ],
            "asked": asked,
            "fired": sorted(fired, key=lambda one: -one["fired"]),
            "idle": len(result["rules"]) - len(fired),
            "chart": self._days(visit, result["days"]),
        }

    def _flip(self, visit: Visit, one: Mapping[str, Any]) -> FlippedEvent:
        if self._place.is_fraud:
            return FlippedEvent(one, f"/console/decisions/{one['id']}")
        url = f"/console/aml/events/{segment(one['externalEventId'])}" if visit.may(*QUEUE_READERS) else ""
        was, now = (
            [(rule, self._place.url_of(rule)) for rule in dict.fromkeys(one[name])]
            for name in ("rulesWas", "rulesNow")
        )
        return FlippedEvent(one, url, was, now)

    def _days(self, visit: Visit, days: Sequence[Mapping[str, Any]]) -> Any:
        """Return the held or alerted events of each day as a line, with those of before as a pale one."""
        if not days:
            return ""
        words = ("review", "deny") if self._place.is_fraud else ("alerted",)
        after, before = (
            [sum(day[when][word] for word in words) for day in days] for when in ("after", "before")
        )
        points = [
            ChartPoint(visit.show.calendar_day(day["day"]), count)
            for day, count in zip(days, after, strict=True)
        ]
        noun = "Held or denied events" if self._place.is_fraud else "Alerted events"
        text = f"{noun} a day, {sum(after)} in all; the pale line is as it was, {sum(before)}"
        return time_series(points, before, text, visit.show.number(max([*after, *before])))

    async def cancel(self, visit: Visit) -> PageAnswer:
        """POST: cancel one that is under way."""
        backtest = visit.path["backtest"]
        await visit.ask("DELETE", f"{self._place.backtests}/{backtest}")
        return visit.redirect(f"{self._path}/{backtest}", notice="backtest-cancelled")

    def table(self) -> tuple[ConsolePage, ...]:
        """The rows of the table of pages."""
        one = f"{self._path}/{{backtest}}"
        return (
            ConsolePage("GET", self._path, RULE_READERS, self.newest),
            ConsolePage("POST", self._path, EDITORS, self.order),
            ConsolePage("GET", one, RULE_READERS, self.show),
            ConsolePage("POST", f"{one}/cancel", EDITORS, self.cancel),
        )


def _order_of(job: BacktestJob) -> BacktestOrder | None:
    try:
        return msgspec.json.decode(job.order, type=BacktestOrder)
    except msgspec.MsgspecError:
        return None  # It is damaged, or of a later version; the other jobs are shown.


def _words(order: BacktestOrder) -> str:
    return f"Version {order.version}" if order.version else Words("A change of the rules")


PAGES: Final = (*BacktestPages(FRAUD).table(), *BacktestPages(AML).table())
