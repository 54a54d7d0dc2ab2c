"""Reports: rates, what labels say of them, the work on reviews, screening and AML; each as a file as well."""

import asyncio
import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.aml.case import AlertState
from vettance.aml.screening.screening_alert import TYPOLOGY
from vettance.clock import DAY_MS
from vettance.console.page import (
    LEADS,
    QUEUE_READERS,
    READERS,
    ConsolePage,
    Download,
    PageAnswer,
    View,
    Visit,
)
from vettance.console.review_forms import names_of
from vettance.console.rule_place import FRAUD, RULE_READERS
from vettance.console.spans import TimeSpan, choices, span_of
from vettance.console.svg_charts import ChartPoint, time_series
from vettance.console.words import Words
from vettance.decisions.decision import Outcome
from vettance.errors import NotFound
from vettance.feedback.find_maturity import find_label_timing
from vettance.feedback.label import MEANS_FRAUD, Label
from vettance.history.rollup import bucket_width
from vettance.history.statistics import LabelCount
from vettance.quality.rule_quality import LABELLED_HITS, HeldAmount, RuleQuality
from vettance.reviews.agreement import agreement_of
from vettance.reviews.sql import count_work
from vettance.rules.ruleset import RuleSetRefused

PATH: Final = "/console/reports"
_WORDS: Final = ("approve", "review", "deny")
_OUTCOMES: Final = (Outcome.ALLOW, Outcome.REVIEW, Outcome.BLOCK)
_HOUR_MS: Final = 3_600_000
_EARLY: Final = (
    "Labels of events of this span, each piece of feedback counted. New events have few labels yet: "
    "figures of a short span may still change."
)


class Report(NamedTuple):
    """A table: what it is called, what its columns are, its rows, and what has to be said about it.

    One with a `page` is shown there, for it takes long to count; here it is made as a file alone. `first` is
    what its first column holds, so that a page can show it as others do: an outcome, a level, a currency
    (whose amounts follow) or a word. Files have it as it is.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    about: str = ""
    page: str = ""
    first: str = ""


_RULES_SHOWN: Final = Report("rules", "What rules are worth", (), (), page=FRAUD.path)


async def reports(visit: Visit) -> PageAnswer:
    """GET /console/reports."""
    span = span_of(visit, "30d")
    stats, before = await asyncio.gather(_stats(visit, span.start_s, span.end_s), _stats(visit, *span.before))
    tables = await _reports(visit, span, stats, _RULES_SHOWN)
    values = {
        "span": span,
        "spans": choices(PATH, span, ("24h", "7d", "30d", "90d")),
        "tables": tables,
        "pictures": pictures_of(visit, stats, before, span),
    }
    return View("reports.html", values, title=Words("Reports"))


async def export(visit: Visit) -> PageAnswer:
    """POST /console/reports/{name}: one report as comma-separated values."""
    span = span_of(visit, visit.form.get("span") or "30d")
    name, rules = visit.path["name"], _RULES_SHOWN
    if name == rules.name:
        rules = await _rules(visit, span.start_s * 1000, span.end_s * 1000)
    found = await _reports(visit, span, await _stats(visit, span.start_s, span.end_s), rules)
    report = next((one for one in found if one.name == name), None)
    if report is None:
        raise NotFound
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(report.columns)
    writer.writerows([[_safe(cell) for cell in row] for row in report.rows])
    return Download(text.getvalue().encode(), "text/csv; charset=utf-8", f"{report.name}.csv")


def _safe(cell: Any) -> Any:
    """Keep a spreadsheet from taking a text for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


async def _stats(visit: Visit, start_s: int, end_s: int) -> Any:
    return await visit.ask("GET", "/api/v1/decisions/stats", {"from": start_s, "to": end_s})


async def _reports(visit: Visit, span: TimeSpan, stats: Any, rules: Report) -> list[Report]:
    store, tenant = visit.parts.store, visit.tenant.id
    from_ms, to_ms = span.start_s * 1000, span.end_s * 1000
    labels, mature, amounts, work, checked = await asyncio.gather(
        visit.parts.counter.labels(tenant, from_ms, to_ms),
        _mature(visit, span),
        visit.parts.quality[FRAUD.kind].amounts(tenant, from_ms, to_ms),
        store.read(count_work(tenant, from_ms, to_ms)),
        visit.parts.reviews.agreement(tenant, from_ms, to_ms),
    )
    found = [
        _rates(stats),
        Report(
            "labels", "What labels say", *_labels(visit, labels, stats["totals"]), _EARLY, first="outcome"
        ),
        mature,
        _value(amounts),
        *([rules] if visit.may(*RULE_READERS) else []),
        _reasons(stats),
        await _work(visit, work),
        _agreement(visit, checked),
    ]
    if visit.tenant.aml and visit.may(*QUEUE_READERS):
        found += await asyncio.gather(_aml(visit, span), _screening(visit, span))
    return found


def _rates(stats: Any) -> Report:
    rows = [
        (one["start"][:16].replace("T", " "), one["evaluated"], one["approve"], one["review"], one["deny"])
        for one in stats["buckets"]
    ]
    columns = ("From (UTC)", "Decisions", "Approved", "Held", "Denied")
    return Report("rates", "Decisions over time", columns, rows)


async def _mature(visit: Visit, span: TimeSpan) -> Report:
    """Count the labels of events that are old enough for theirs to have come."""
    store, tenant = visit.parts.store, visit.tenant.id
    timing = await find_label_timing(store, tenant)
    end_s = min(timing.mature_ms // DAY_MS * DAY_MS // 1000, span.end_s)
    days = max(1, round(timing.maturity_ms / DAY_MS))
    about = f"Events older than {days} days, by which age the labels of this tenant have come."
    columns: tuple[str, ...] = ()
    rows: Sequence[Sequence[Any]] = ()
    if end_s > span.start_s:
        mature = tenant, span.start_s * 1000, end_s * 1000
        counter = visit.parts.counter
        outcomes, counted = await asyncio.gather(counter.outcomes(*mature), counter.labels(*mature))
        totals = {word: outcomes[outcome] for word, outcome in zip(_WORDS, _OUTCOMES, strict=True)}
        columns, rows = _labels(visit, counted, totals)
    return Report(
        "mature-labels", "What labels say of events that are mature", columns, rows, about, first="outcome"
    )


async def _rules(visit: Visit, from_ms: int, to_ms: int) -> Report:
    """Return what the rules that acted most were worth."""
    try:
        report = await visit.parts.quality[FRAUD.kind].outline(visit.tenant.id, from_ms, to_ms, LABELLED_HITS)
    except RuleSetRefused:
        rules: Sequence[RuleQuality] = ()  # This version cannot read the rules in force.
    else:
        rules = sorted(report.quality.rules, key=lambda one: (-one.hits, one.rule))
    rows = [
        (one.rule, one.hits, fraud, legit, visit.show.interval(fraud, fraud + legit))
        for one in rules
        if one.hits
        for fraud, legit in (one.labelled,)
    ]
    columns = ("Rule", "Hits", "Fraud", "Legitimate", "Fraud among the labelled")
    return Report(_RULES_SHOWN.name, _RULES_SHOWN.title, columns, rows)


def _value(amounts: Sequence[HeldAmount]) -> Report:
    rows = [(one.currency or "not said", one.held, one.fraud, one.legit) for one in amounts]
    columns = ("Currency", "Stopped: held or denied", "Saved: of it fraud", "Of it legitimate")
    about = "Amounts of events that rules held or denied. Fraud and legitimate are what labels say."
    return Report("value", "Value stopped and saved", columns, rows, about, first="currency")


def _labels(
    visit: Visit, counted: Sequence[LabelCount], totals: Mapping[str, int]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and the rows that say what labels say of each kind of decision."""
    fraud = dict.fromkeys(_WORDS, 0)
    legit, charged = dict(fraud), dict(fraud)
    for label, *counts in counted:
        meaning = MEANS_FRAUD.get(Label(label))
        for word, count in zip(_WORDS, counts, strict=True):
            charged[word] += count if label == Label.CHARGEBACK else 0
            if meaning is not None:
                (fraud if meaning else legit)[word] += count
    rows = [
        (
            word,
            totals[word],
            fraud[word],
            legit[word],
            charged[word],
            visit.show.interval(legit[word], fraud[word] + legit[word]),
        )
        for word in _WORDS
    ]
    return (
        "Decision",
        "Decisions",
        "Fraud",
        "Legitimate",
        "Chargebacks",
        "Legitimate among the labelled",
    ), rows


def _reasons(stats: Any) -> Report:
    rows = [(one["code"], one["count"]) for one in stats["topReasonCodes"]]
    return Report("reasons", "Most frequent reasons", ("Reason", "Decisions"), rows)


async def _work(visit: Visit, counted: Sequence[Any]) -> Report:
    names = await names_of(visit) if visit.may(*LEADS) else {}
    sums: dict[str, list[int]] = {}
    for who, outcome, count, spent_ms in counted:
        row = sums.setdefault(who if visit.may(*LEADS) else "everybody", [0, 0, 0])
        row[0 if outcome == "approve" else 1] += count
        row[2] += spent_ms
    rows = [
        (names.get(who, who), approved, denied, round(spent_ms / max(1, approved + denied) / _HOUR_MS, 2))
        for who, (approved, denied, spent_ms) in sorted(sums.items())
    ]
    rows.sort(key=lambda row: row[0])
    columns = ("Who", "Approved", "Denied", "Hours until settled, on average")
    about = "" if visit.may(*LEADS) else "Leads see it by person."
    return Report("reviews", "Work on reviews", columns, rows, about)


def _agreement(visit: Visit, checked: dict[tuple[str, str], int]) -> Report:
    found = agreement_of(checked)
    rows = []
    if found is not None:
        kappa = "–" if found.kappa is None else f"{found.kappa:.2f}"
        rows.append((found.seen_twice, visit.show.percent(found.share), kappa))
    columns = ("Reviews seen twice", "Decided alike", "Cohen's κ")
    about = "κ is 1 where two people always agree, and 0 where they agree as often as by chance."
    return Report("checks", "Second looks", columns, rows, about)


async def _aml(visit: Visit, span: TimeSpan) -> Report:
    asked = {"from": span.start_s, "to": span.end_s, "limit": 1}
    words = ("critical", "high", "medium", "low")
    counts = await asyncio.gather(
        *(
            visit.ask("GET", f"/api/v1/aml/{kind}", {**asked, "severity": word})
            for kind in ("alerts", "cases")
            for word in words
        )
    )
    totals = [one["total"] for one in counts]
    rows = [(word, totals[at], totals[at + len(words)]) for at, word in enumerate(words)]
    return Report("aml", "Money laundering", ("Severity", "Alerts", "Cases"), rows, first="level")


async def _screening(visit: Visit, span: TimeSpan) -> Report:
    asked = {"from": span.start_s, "to": span.end_s, "limit": 1, "typology": TYPOLOGY}
    found = await asyncio.gather(
        *(visit.ask("GET", "/api/v1/aml/alerts", {**asked, "state": state.value}) for state in AlertState)
    )
    rows = [(state.value.lower(), one["total"]) for state, one in zip(AlertState, found, strict=True)]
    return Report(
        "screening", "Screening", ("State", "Alerts"), rows, "Alerts for names on a watchlist.", first="word"
    )


def pictures_of(visit: Visit, stats: Any, before: Any, span: TimeSpan) -> list[tuple[str, Any]]:
    """Return a line over time for each outcome of some statistics, a pale one of the span before with it."""
    width_s = bucket_width(span.width_s * 1000)
    starts = range(span.start_s - span.start_s % width_s, span.end_s, width_s)
    found = []
    for word, title in (("approve", "Approved"), ("review", "Held"), ("deny", "Denied")):
        points = [
            ChartPoint(visit.show.label(start * 1000, width_s), value)
            for start, value in zip(starts, _counts(visit, stats, word, starts), strict=True)
        ]
        text = f"{title} over time, {visit.show.number(stats['totals'][word])} in all"
        then: list[int] = []
        if before["totals"]["evaluated"]:
            first = (starts[0] - span.width_s) // width_s * width_s
            then = _counts(visit, before, word, range(first, first + len(starts) * width_s, width_s))
            text += f"; the pale line is the span before, {visit.show.number(before['totals'][word])} in all"
        most = max([*(point.value for point in points), *then])
        found.append((title, time_series(points, then, text, visit.show.number(most), word)))
    return found


def _counts(visit: Visit, stats: Any, word: str, starts: range) -> list[int]:
    """Return the count of each bucket; statistics leave out those without a decision."""
    counted = {(visit.show.moment(one["start"]) or 0) // 1000: one[word] for one in stats["buckets"]}
    return [counted.get(start, 0) for start in starts]


PAGES: Final = (
    ConsolePage("GET", PATH, READERS, reports),
    ConsolePage("POST", f"{PATH}/{{name}}", READERS, export),
)
