"""The report: a case as one page for print, to go with a report of suspicious activity."""

import html
from typing import Any, Final

from vettance.aml.answers import AmlAlertAnswer, CaseEvent, CaseRecord
from vettance.wire.payload import encode

# No script and nothing from elsewhere, so that the page prints the same wherever it is opened.
_STYLE: Final = """
@page { size: A4; margin: 20mm 18mm; }
body { font: 10.5pt/1.45 Georgia, "Times New Roman", serif; color: #111; max-width: 178mm; margin: 0 auto; }
h1 { font-size: 17pt; margin: 0 0 2mm; } h2 { font-size: 13pt; margin: 8mm 0 2mm; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 1mm 2mm; }
th { font-weight: normal; color: #555; } tbody th { width: 40%; overflow-wrap: anywhere; }
tbody tr { border-top: 0.3pt solid #bbb; }
section { break-inside: avoid; } thead { display: table-header-group; } tr { break-inside: avoid; }
code { font: 8.5pt/1.35 "DejaVu Sans Mono", Menlo, monospace; }
code { overflow-wrap: anywhere; white-space: pre-wrap; }
footer { margin-top: 10mm; color: #555; font-size: 9pt; }
"""

#: The headers that go with the page: it may be looked at, and nothing more.
POLICY: Final = (
    (
        "content-security-policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    ),
    ("x-content-type-options", "nosniff"),
)


def report_page(record: CaseRecord, exported_at: str, exported_by: str) -> bytes:
    """Write a case as an HTML page. Every text of the case is escaped: it came from outside."""
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f"<title>Case {_text(record.id)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Case {_text(record.id)}</h1>",
        _pairs(
            ("Customer", record.customer),
            ("State", record.state.value),
            ("Severity", record.severity.value),
            ("Resolution", record.resolution.value if record.resolution else "none yet"),
            ("Assigned to", record.assignee or "nobody"),
            ("Opened", record.opened_at),
            ("Last change", record.updated_at),
            (
                "Resolved",
                f"{record.resolved_at} by {record.resolved_by}" if record.resolved_at else "not yet",
            ),
        ),
        f"<h2>Alerts ({len(record.alerts)})</h2>",
        *(_alert(alert) for alert in record.alerts),
        f"<h2>Events ({len(record.events)})</h2>",
        _table(("When", "Event", "Rules", "As it was sent"), [_event(event) for event in record.events]),
        "<h2>Timeline</h2>",
        _table(
            ("When", "What", "Who", "Text"),
            [
                (_text(line.at), _text(line.kind), _text(line.actor), _text(line.text))
                for line in record.timeline
            ],
        ),
        f"<footer>Exported {_text(exported_at)} by {_text(exported_by)}.</footer></body></html>\n",
    ]
    return "\n".join(parts).encode()


def _text(value: Any) -> str:
    return html.escape(str(value))


def figure(value: Any) -> Any:
    """Write a value as an officer reads it; the JSON of the case has all its digits."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return value
    return f"{value:.4g}" if 0 < abs(value) < 100 else f"{value:,.2f}".removesuffix(".00")


def _pairs(*pairs: tuple[str, Any]) -> str:
    rows = "".join(f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in pairs)
    return f"<table><tbody>{rows}</tbody></table>"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Write a table; the cells are HTML already."""
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _alert(alert: AmlAlertAnswer) -> str:
    figures = alert.figures.get("values", {})
    head = f"{_text(alert.severity.value)}: {_text(alert.typology)}"
    return (
        f"<section><h3>{head}</h3><p>{_text(alert.summary)}</p>"
        + _pairs(
            ("Alert", alert.id),
            ("Rule", f"{alert.figures.get('ruleName', '')} ({alert.rule_id})"),
            ("Raised", alert.created_at),
            ("Events", alert.events),
            *((name, figure(value)) for name, value in figures.items()),
        )
        + "</section>"
    )


def _event(event: CaseEvent) -> tuple[str, ...]:
    return (
        _text(event.occurred_at),
        _text(event.external_event_id),
        _text(", ".join(event.rule_ids)),
        f"<code>{_text(encode(event.event).decode())}</code>",
    )
