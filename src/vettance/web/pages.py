"""The open pages: whether the service lives and is ready, and what it takes and answers."""

import asyncio
import functools
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qs

import msgspec

from vettance.db.engine import StoreDown
from vettance.errors import NotFound
from vettance.web.openapi import build_openapi
from vettance.web.routing import Access, Call, Handler, Page, Route, RouteReply, RouteTable
from vettance.wire.payload import Wire

#: Answers why a part of the service is not ready, or None when it is.
Check = Callable[[], Awaitable[str | None]]

#: Seconds that one readiness check may take. Orchestrators give a probe about a second or two in all.
CHECK_S_MAX: Final = 1.0

Headers = tuple[tuple[str, str], ...]

_STATIC: Final = Path(__file__).parent / "static"
_FILES: Final[dict[str, tuple[str, str]]] = {
    "swagger-ui.css": ("swagger/swagger-ui.css", "text/css; charset=utf-8"),
    "swagger-ui-bundle.js": ("swagger/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    "start.js": ("docs/start.js", "text/javascript; charset=utf-8"),
}
# Only files of this service, nothing inline but the styles that Swagger UI sets on its elements, and no
# other site to send anything to: a key typed into the page can go nowhere but back here.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_GUARDS: Final = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
)


class Health(Wire, frozen=True):
    """The process is alive."""

    status: str


class CheckResult(Wire, frozen=True):
    """What one readiness check found; `reason` says why it is not ok, or what to see to although it is."""

    name: str
    ok: bool
    reason: str | None


class Readiness(Wire, frozen=True):
    """Whether the service can do its work, and what stands in the way."""

    status: str
    checks: list[CheckResult]


def with_pages(
    routes: tuple[Route, ...],
    checks: Mapping[str, Check],
    version: str,
    notices: Mapping[str, Check] = MappingProxyType({}),
) -> RouteTable:
    """Return the table of `routes` and the open pages, which document all of it, themselves included.

    `notices` are shown with the checks, but whatever they say the service is ready.
    """
    document: list[bytes] = []

    async def openapi(call: Call) -> Page:
        return cached(call, document[0], "application/json", immutable=False)

    table = RouteTable(
        (
            *routes,
            _open("/healthz", _healthz, "Tell whether the process is alive", answers=Health),
            _open(
                "/readyz",
                _readyz(checks, notices),
                "Tell whether it can work",
                answers=Readiness,
                otherwise=Readiness,
            ),
            _open("/openapi.json", openapi, "This document"),
            _open("/docs", _docs, "The page that shows this document", in_openapi=False),
            _open("/docs/{file}", _file, "What the page is made of", in_openapi=False),
        )
    )
    document.append(build_openapi(table, version))
    return table


def _open(
    path: str,
    handler: Handler,
    summary: str,
    *,
    answers: type | None = None,
    otherwise: type | None = None,
    in_openapi: bool = True,
) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        summary=summary,
        tag="Service",
        access=Access.NONE,
        answers=answers,
        in_openapi=in_openapi,
        otherwise=((503, otherwise),) if otherwise is not None else (),
    )


async def _healthz(_call: Call) -> RouteReply:
    return RouteReply(Health(status="ok"))


def _readyz(checks: Mapping[str, Check], notices: Mapping[str, Check]) -> Handler:
    async def readyz(_call: Call) -> RouteReply:
        results = await asyncio.gather(*(_run(name, check) for name, check in checks.items()))
        noticed = await asyncio.gather(*(_run(name, check) for name, check in notices.items()))
        ready = all(result.ok for result in results)
        results += [msgspec.structs.replace(result, ok=True) for result in noticed]
        headers = () if ready else (("retry-after", "1"),)
        payload = Readiness(status="ready" if ready else "unready", checks=results)
        return RouteReply(payload, 200 if ready else 503, headers)

    return readyz


async def _run(name: str, check: Check) -> CheckResult:
    try:
        async with asyncio.timeout(CHECK_S_MAX):
            reason = await check()
    except TimeoutError:
        reason = f"did not answer within {CHECK_S_MAX:g} s"
    except (StoreDown, OSError):
        reason = "cannot be reached"
    return CheckResult(name=name, ok=reason is None, reason=reason)


async def _docs(call: Call) -> Page:
    headers = (("content-security-policy", _POLICY), *_GUARDS)
    return cached(call, _front_page(), "text/html; charset=utf-8", immutable=False, headers=headers)


async def _file(call: Call) -> Page:
    known = _FILES.get(call.path["file"])
    if known is None:
        raise NotFound
    content, digest = _read(known[0])
    asked = parse_qs(call.query_string.decode("latin-1")).get("v")
    return cached(call, content, known[1], immutable=asked == [digest], headers=_GUARDS)


@functools.cache
def _read(name: str) -> tuple[bytes, str]:
    """Return a static file and a digest of it that changes whenever the file does."""
    content = (_STATIC / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def _front_page() -> bytes:
    """Return the page; each file it asks for is named with its digest, so that a new version is fetched."""
    text = _read("docs/index.html")[0].decode()
    for name, (path, _) in _FILES.items():
        text = text.replace(f"{{{name}}}", _read(path)[1])
    return text.encode()


def cached(
    call: Call,
    content: bytes,
    content_type: str,
    *,
    immutable: bool,
    headers: tuple[tuple[str, str], ...] = (),
) -> Page:
    """Answer with an entity tag, and with 304 when the caller has these very bytes."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    caching = "public, max-age=31536000, immutable" if immutable else "no-cache"
    headers = (("etag", tag), ("cache-control", caching), *headers)
    known = call.headers.get(b"if-none-match", b"").decode("latin-1")
    if known.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Page(b"", "", 304, headers)
    return Page(content, content_type, 200, headers)
