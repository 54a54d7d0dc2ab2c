"""The endpoints of the interface specification as a table."""

from typing import NamedTuple


class Endpoint(NamedTuple):
    """One row: method, path as OpenAPI writes it, status of success."""

    method: str
    path: str
    status: int


_V1 = "/api/v1"

ENDPOINTS: tuple[Endpoint, ...] = tuple(
    Endpoint(method, _V1 + path, status)
    for method, path, status in (
        # Decisions
        ("POST", "/decisions/evaluate", 200),
        ("GET", "/decisions/{id}", 200),
        ("GET", "/decisions", 200),
        ("GET", "/decisions/stats", 200),
        # Events
        ("POST", "/events", 201),
        ("POST", "/events/ingest", 201),
        ("POST", "/events/async", 202),
        ("GET", "/events", 200),
        ("GET", "/events/{id}", 200),
        ("GET", "/events/stats", 200),
        # Lists
        ("GET", "/lists", 200),
        ("POST", "/lists", 201),
        ("DELETE", "/lists/{id}", 200),
        ("POST", "/lists/customer/{email}", 201),
        ("DELETE", "/lists/customer/{email}", 200),
        ("POST", "/lists/device", 201),
        ("DELETE", "/lists/device/{fingerprint}", 200),
        ("POST", "/lists/ip", 201),
        ("DELETE", "/lists/ip/{ip}", 200),
        # Feedback
        ("POST", "/feedback/decision/{id}", 201),
        ("POST", "/feedback/event/{id}", 201),
        # Webhooks
        ("POST", "/webhooks/subscriptions", 201),
        ("GET", "/webhooks/subscriptions", 200),
        ("POST", "/webhooks/subscriptions/{id}/test", 200),
        ("DELETE", "/webhooks/subscriptions/{id}", 200),
        # Browser SDK
        ("POST", "/websdk/tokens", 201),
        ("POST", "/collect", 200),
        ("POST", "/websdk/signals", 202),
        # AML
        ("POST", "/aml/events", 200),
        ("GET", "/aml/events/{externalEventId}", 200),
        ("POST", "/aml/screen", 200),
        ("GET", "/aml/screenings/{id}", 200),
    )
)

#: Paths of ours beyond the specification, which a client written from it may ignore.
ADDITIONS: frozenset[tuple[str, str]] = frozenset(
    {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", _V1 + "/rules/quality"),
        ("GET", _V1 + "/aml/rules/quality"),
        ("GET", _V1 + "/aml/coverage"),
        ("POST", _V1 + "/rules/suggestions"),
        ("GET", _V1 + "/rules/suggestions/{suggestionId}"),
        ("DELETE", _V1 + "/rules/suggestions/{suggestionId}"),
        ("POST", _V1 + "/aml/backtests"),
        ("GET", _V1 + "/aml/backtests/{backtestId}"),
        ("DELETE", _V1 + "/aml/backtests/{backtestId}"),
        ("GET", _V1 + "/models"),
        ("GET", _V1 + "/models/{version}"),
        ("GET", _V1 + "/models/features"),
        ("PUT", _V1 + "/models/features"),
        ("GET", _V1 + "/models/features/versions"),
        ("GET", _V1 + "/models/features/versions/{version}"),
        ("POST", _V1 + "/models/features/rollback"),
        ("GET", _V1 + "/rules/snoozes"),
        ("POST", _V1 + "/rules/snoozes"),
        ("DELETE", _V1 + "/rules/snoozes/{id}"),
        ("GET", _V1 + "/aml/rules/snoozes"),
        ("POST", _V1 + "/aml/rules/snoozes"),
        ("DELETE", _V1 + "/aml/rules/snoozes/{id}"),
        ("POST", _V1 + "/backtests"),
        ("GET", _V1 + "/backtests/{backtestId}"),
        ("DELETE", _V1 + "/backtests/{backtestId}"),
        ("GET", "/openapi.json"),
        ("GET", _V1 + "/events/jobs/{jobId}"),
        ("GET", _V1 + "/aml/alerts"),
        ("GET", _V1 + "/aml/cases"),
        ("GET", _V1 + "/aml/cases/{id}"),
        ("GET", _V1 + "/aml/cases/{id}/export"),
        ("POST", _V1 + "/aml/cases/{id}/assign"),
        ("POST", _V1 + "/aml/cases/{id}/notes"),
        ("POST", _V1 + "/aml/cases/{id}/reject"),
        ("POST", _V1 + "/aml/cases/{id}/resolve"),
        ("GET", _V1 + "/aml/settings"),
        ("PUT", _V1 + "/aml/settings"),
        ("POST", _V1 + "/aml/screenings/{id}/dismiss"),
        ("GET", _V1 + "/aml/watchlists"),
        ("GET", _V1 + "/reviews"),
        ("GET", _V1 + "/reviews/{decisionId}"),
        ("POST", _V1 + "/reviews/{decisionId}/settle"),
        *(
            (method, f"{_V1}{product}/rulesets{path}")
            for product in ("", "/aml")
            for method, path in (
                ("GET", ""),
                ("POST", ""),
                ("POST", "/check"),
                ("POST", "/rollback"),
                ("GET", "/log"),
                ("GET", "/{version}"),
                *(("POST", f"/{{version}}/{step}") for step in ("propose", "approve", "reject", "activate")),
            )
        ),
        ("GET", _V1 + "/webhooks/subscriptions/{id}"),
        ("GET", _V1 + "/webhooks/subscriptions/{id}/deliveries"),
        ("POST", _V1 + "/webhooks/subscriptions/{id}/replay"),
        ("POST", _V1 + "/webhooks/subscriptions/{id}/rotate-secret"),
        ("POST", _V1 + "/webhooks/deliveries/{id}/replay"),
    }
)


def specification_paths() -> frozenset[tuple[str, str]]:
    """Return the (method, path) pairs of the specification."""
    return frozenset((row.method, row.path) for row in ENDPOINTS)
