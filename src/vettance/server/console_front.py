"""The console in front of a service: under /console of its address, or alone at one of its own."""

from vettance.clock import HOUR_MS, MINUTE_MS
from vettance.console.app import Console
from vettance.console.masking import ValueTokens
from vettance.console.page_table import PageTable
from vettance.console.parts import ConsoleParts
from vettance.console.rule_place import AML, FRAUD
from vettance.history.entity_neighbours import EntityNeighbours
from vettance.history.statistics import DecisionCounter
from vettance.people.administer import UserAdministration
from vettance.people.credentials import Credentials
from vettance.people.keep_forms import KeptForms
from vettance.people.openid_provider import OpenIdProvider
from vettance.people.provider_sign_in import ProviderSignIns
from vettance.people.session import SessionLife
from vettance.people.sign_in import SignIns
from vettance.server.application import Service
from vettance.settings.settings import Environment
from vettance.telemetry.logs import logger
from vettance.web.asgi import Message
from vettance.web.edge import Asgi, Send
from vettance.web.request_body import Receive

_log = logger()


def with_console(service: Service, behind: Asgi) -> Asgi:
    """Return what serves the pages and hands every other request on."""
    settings = service.settings
    life = SessionLife(
        idle_ms=settings.session_idle_minutes * MINUTE_MS, most_ms=settings.session_hours * HOUR_MS
    )
    sessions = SignIns(service.store, service.secret, service.ids, life)
    provider = None
    if settings.oidc is not None:
        provider = ProviderSignIns(
            OpenIdProvider(settings.oidc, service.secret),
            service.store,
            service.ids,
            sessions,
            lambda tenant: service.keys.tenant(tenant) is not None,
        )
    parts = ConsoleParts(
        store=service.reading,
        acts=service.acts,
        ids=service.ids,
        keys=service.keys,
        routes=service.routes,
        sessions=sessions,
        kept=KeptForms(service.store, service.secret, life),
        provider=provider,
        credentials=Credentials(service.acts, service.secret, sessions),
        administration=UserAdministration(service.acts, service.ids),
        tokens=ValueTokens(service.secret),
        secret=service.secret,
        explainer=service.explainer,
        counter=DecisionCounter(service.reading, service.finder),
        finder=service.finder,
        reviews=service.reviews.desk,
        bulk=service.reviews.bulk,
        screenings=service.aml.screenings,
        linker=service.linker,
        neighbours=EntityNeighbours(service.reading, service.finder),
        names_read=service.explainer.conditions.names,
        quality=dict(
            zip((FRAUD.kind, AML.kind), (one.desk for one in service.measures.quality), strict=True)
        ),
        keep=settings.keep,
        proxies=settings.proxies,
        live_keys=settings.environment is Environment.PRODUCTION,
    )
    return Console(parts, PageTable(), behind, _log_error)


def console_alone(service: Service) -> Asgi:
    """Return what serves the pages, and nothing else, at an address of its own."""
    return with_console(service, _lead_to_console)


async def _lead_to_console(scope: Message, _receive: Receive, send: Send) -> None:
    """Answer what is not under /console: the root leads there."""
    if scope["type"] != "http":
        await send({"type": "websocket.close"})
        return
    is_root = scope["raw_path"] == b"/"
    headers = [(b"content-length", b"0"), *([(b"location", b"/console/")] if is_root else [])]
    await send({"type": "http.response.start", "status": 303 if is_root else 404, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _log_error(request_id: str, error: BaseException) -> None:
    _log.error("page_failed", request_id=request_id, exc_info=error)
