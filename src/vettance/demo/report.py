"""How the demo's results look to a person."""

import json
import shlex
from typing import Final

import rich.json
from rich.console import Console
from rich.table import Table

from vettance.demo.drive import PATH, DemoRun, Example
from vettance.demo.model_trial import ModelComparison
from vettance.demo.scorecard import DECISIONS, Scorecard
from vettance.wire.payload import JSON

_REASONS_SHOWN: Final = 10
#: What to try after the demo: a large payment of a customer whom the service has never seen.
TRY_BODY: Final = {
    "eventName": "payment.attempt",
    "eventCategory": "TRANSACTION",
    "customer": {"externalId": "you", "email": "you@mailinator.com"},
    "device": {"fingerprint": "my-laptop"},
    "ip": "192.0.2.7",
    "country": "DE",
    "metadata": {"amount": 1900, "currency": "EUR"},
}


def run_record(run: DemoRun) -> JSON:
    """Tell a script what `show_run` tells a person; rates are parts of 1, None without a case."""
    card = run.card
    quantiles = zip(("p50", "p95", "p99"), card.quantiles_ms(0.5, 0.95, 0.99), strict=True)
    return {
        "decided": card.decided,
        "refused": card.refused.total(),
        "seconds": round(run.took_s, 3),
        "perSecond": round(card.decided / max(run.took_s, 1e-9), 1),
        "latencyMs": {name: round(value, 2) for name, value in quantiles},
        "decisions": {
            decision: {"legit": card.of(decision, fraud=False), "fraud": card.of(decision, fraud=True)}
            for decision in DECISIONS
        },
        "precision": card.precision(blocked_only=False),
        "precisionOfDenied": card.precision(blocked_only=True),
        "averagePrecision": card.average_precision(),
        "scenarios": {
            row.scenario: {
                "events": row.events,
                "reviewOrDeny": row.reviewed,
                "deny": row.blocked,
                "cases": row.cases,
                "casesNoticed": row.cases_stopped,
            }
            for row in card.caught()
        },
        "reasons": dict(card.reasons.most_common()),
    }


def show_run(console: Console, run: DemoRun) -> None:
    """Print rates, what was caught, reasons, and one decision as it was answered."""
    card = run.card
    p50, p95, p99 = card.quantiles_ms(0.5, 0.95, 0.99)
    console.print()
    console.print(
        f"[bold]{card.decided:,}[/] decisions in {run.took_s:.1f} s: "
        f"[bold green]{card.decided / max(run.took_s, 1e-9):,.0f} per second[/], "
        "each on disk before it was answered"
    )
    console.print(f"latency at the client: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms")
    if card.refused:
        told = ", ".join(f"{count:,} with {status}" for status, count in card.refused.items())
        console.print(f"[bold red]{card.refused.total():,} events were not decided[/]: {told}")
        console.print(f"the first answer: {(run.refusal or b'').decode('utf-8', 'replace')}", markup=False)
    console.print(_decisions_table(card))
    if card.caught():
        console.print(_scenarios_table(card))
        console.print(_worth(card))
    console.print(_reasons_table(card))
    if run.example is not None:
        show_example(console, run.example)


def comparison_record(compared: ModelComparison | str | None) -> JSON:
    """Tell a script what `show_comparison` tells a person; nothing where no model was trained."""
    if not isinstance(compared, ModelComparison):
        return {"model": None}
    orders = {
        one.name: {"fraudsCaught": one.caught, "averagePrecision": round(one.average_precision, 4)}
        for one in compared.orders
    }
    counts = {"events": compared.events, "scored": compared.scored, "frauds": compared.frauds}
    return {"model": {**counts, "held": compared.held, "orders": orders}}


def show_comparison(console: Console, compared: ModelComparison | str) -> None:
    """Print what the model adds to the rules over the last part of the stream, or why none was trained."""
    if isinstance(compared, str):
        console.print(f"No model scores events: {compared}")
        return
    table = Table(title="Rules alone, and with the model", title_justify="left")
    table.add_column("ordered by")
    for name in (f"frauds among the {compared.held:,} highest", "of all fraud", "average precision"):
        table.add_column(name, justify="right")
    for one in compared.orders:
        share = _share(one.caught, compared.frauds)
        table.add_row(one.name, f"{one.caught:,}", share, f"{one.average_precision:.3f}")
    console.print(table)
    console.print(
        "A model was trained from labels that came a day after their events. It is in shadow, and scored "
        f"{compared.scored:,} of the last {compared.events:,} events."
    )


def _decisions_table(card: Scorecard) -> Table:
    table = Table(title="Decision against the truth", title_justify="left")
    table.add_column("decision")
    for name in ("legit", "fraud"):
        table.add_column(name, justify="right")
    table.add_column("of all legit", justify="right")
    table.add_column("of all fraud", justify="right")
    legit_all = sum(card.of(decision, fraud=False) for decision in DECISIONS)
    fraud_all = sum(card.of(decision, fraud=True) for decision in DECISIONS)
    for decision in DECISIONS:
        legit, fraud = card.of(decision, fraud=False), card.of(decision, fraud=True)
        table.add_row(
            decision, f"{legit:,}", f"{fraud:,}", _share(legit, legit_all), _share(fraud, fraud_all)
        )
    return table


def _scenarios_table(card: Scorecard) -> Table:
    """Tabulate the scenarios; a case (where there are any) is noticed when one of its events is stopped."""
    rows = card.caught()
    with_cases = any(row.cases for row in rows)
    table = Table(title="What was caught, by scenario", title_justify="left")
    table.add_column("scenario")
    for name in ("events", "review or deny", "deny", *(("cases", "noticed") if with_cases else ())):
        table.add_column(name, justify="right")
    for row in rows:
        cells = [f"{row.events:,}", _share(row.reviewed, row.events), _share(row.blocked, row.events)]
        if with_cases:
            cells += [f"{row.cases:,}", _share(row.cases_stopped, row.cases)]
        table.add_row(row.scenario, *cells)
    return table


def _worth(card: Scorecard) -> str:
    frauds = sum(card.of(decision, fraud=True) for decision in DECISIONS)
    wide = _percent(card.precision(blocked_only=False))
    narrow = _percent(card.precision(blocked_only=True))
    area = card.average_precision()
    ap = "none" if area is None else f"{area:.3f}"
    return (
        f"precision: {wide} of what was reviewed or denied was fraud, {narrow} of what was denied\n"
        f"average precision of the score: {ap} (a coin would reach {frauds / max(1, card.decided):.3f})"
    )


def _reasons_table(card: Scorecard) -> Table:
    table = Table(title="Most frequent reasons", title_justify="left")
    table.add_column("reason code")
    table.add_column("events", justify="right")
    for code, count in card.reasons.most_common(_REASONS_SHOWN):
        table.add_row(code, f"{count:,}")
    return table


def show_example(console: Console, example: Example) -> None:
    """Print one decision as the service answered it."""
    event = json.loads(example.sent)
    console.print(f"\n[bold]One of them, explained[/] ({example.scenario}, `{event['eventName']}`)")
    console.print(rich.json.JSON(example.answered.decode(), indent=2))


def curl_line(base_url: str, api_key: str) -> str:
    """Return a command line that asks for a decision with a working key."""
    body = json.dumps(TRY_BODY, separators=(",", ":"))
    return " ".join(
        (
            "curl -s",
            shlex.quote(base_url + PATH),
            f"-H {shlex.quote('x-api-key: ' + api_key)}",
            f"-H {shlex.quote('Content-Type: application/json')}",
            f"-d {shlex.quote(body)}",
        )
    )


def _share(part: int, whole: int) -> str:
    return _percent(part / whole if whole else None)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}" if value >= 0.001 or value == 0 else f"{value:.3%}"
