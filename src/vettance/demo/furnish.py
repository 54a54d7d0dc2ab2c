"""What a console shows besides decisions: labels, list entries, alerts, cases and screenings, by the API."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from vettance.demo.aml_demo import about_events, money, watch_money
from vettance.demo.delayed_labels import JudgedDecision, label_request
from vettance.demo.demo_client import Connection, DemoTarget, post
from vettance.demo.launch import RunningService, command
from vettance.wire.payload import encode

#: Who opens the link; the domain is reserved for examples (RFC 2606).
EMAIL: Final = "you@example.com"
_ROLES: Final = ("analyst", "lead", "editor", "admin", "auditor")
_CUSTOMERS: Final = 40
_DAYS: Final = 20
#: About how many events that is; for the bar only.
EVENTS: Final = about_events(_CUSTOMERS, _DAYS)
#: The part of what analysts and banks learn about that they tell, and the most of it.
_TOLD: Final = 0.6
_LABELS_MAX: Final = 400
_CONNECTIONS: Final = 8
#: Names of the list that comes along, one spelt otherwise, and one that is on none.
_SCREENED: Final = (
    {"inputName": "Sergey Lavrov", "inputDob": "1950-03-21", "externalId": "supplier-17"},
    {"inputName": "Alexander Lukashenko", "externalId": "supplier-23"},
    {"inputName": "Wilhelmina Oakes", "inputDob": "1984-05-02", "externalId": "supplier-31"},
)
_LISTED: Final = (
    {
        "type": "EMAIL",
        "value": "refund.king@mailinator.example",
        "listType": "BLOCK",
        "notes": "Returns empty boxes.",
    },
    {"type": "IP", "value": "203.0.113.66", "listType": "BLOCK", "notes": "Open proxy."},
    {"type": "EMAIL", "value": "press@partner.example", "listType": "ALLOW", "notes": "Tests our shop."},
)


def furnish(
    service: RunningService,
    folder: Path,
    judged: Sequence[JudgedDecision],
    seed: int,
    advance: Callable[[int], None],
) -> None:
    """Fill the pages of the console that traffic alone leaves empty. Raises `ClientFault`, `LaunchFault`."""
    command(folder, "watchlist", "import", "--source", "sample")
    command(folder, "tenant", "set", service.tenant_id, "--aml", "on")
    asyncio.run(_furnish(service.target, judged, seed, advance))


def make_link(service: RunningService, folder: Path) -> str:
    """Make a user who may do everything, and return the path of their link. Raises `LaunchFault`."""
    roles = [word for role in _ROLES for word in ("--role", role)]
    made = command(folder, "user", "create", EMAIL, "--tenant", service.tenant_id, *roles, "--name", "You")
    return str(made["link"])


async def _furnish(
    to: DemoTarget, judged: Sequence[JudgedDecision], seed: int, advance: Callable[[int], None]
) -> None:
    await watch_money(money(_CUSTOMERS, _DAYS, seed), to, _CONNECTIONS, advance)
    connection = await Connection.open(to)
    try:
        for path, body in _requests(judged, seed):
            await connection.ask(post(to, path, encode(body)))
    finally:
        connection.close()


def _requests(judged: Sequence[JudgedDecision], seed: int) -> Iterator[tuple[str, Any]]:
    for entry in _LISTED:
        yield "/api/v1/lists", entry
    for subject in _SCREENED:
        yield "/api/v1/aml/screen", subject
    rng = Random(f"labels:{seed}")  # noqa: S311 - repeatable, not secret.
    told = [one for one in judged if rng.random() < _TOLD]
    for one in told[-_LABELS_MAX:]:
        yield label_request(one)
