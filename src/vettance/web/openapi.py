"""The OpenAPI 3.1 document, built from the route table: what the service takes and answers, for machines."""

import re
from typing import Any, Final

import msgspec

from vettance import errors
from vettance.errors import Refusal
from vettance.web.query import parameters_of
from vettance.web.routing import Access, Route, RouteTable, is_id_name, path_parameters
from vettance.wire.payload import JSON, Wire, encode

#: What the page says before its endpoints, as CommonMark.
_ABOUT: Final = """\
Press **Authorize** and give an API key: `vettance tenant create "Corner Shop"` makes a tenant,
`vettance key create --tenant ten_…` a key. Every example works as it stands; where a path names an `{id}`,
give one that you were answered.

- A refusal is `{"error": {"code", "message", "details"}}`. The code tells programs what happened, the message
  tells people what to do, and `details` names each faulty member by its path.
- 429 and 503 say in `Retry-After` (and `details.retryAfter`) after how many seconds to ask again. The limits
  stand in the headers of every answer.
- `X-Request-Id` is on every answer; it is yours when you send one.
- With a test key, `X-Vettance-Unknown` names members and parameters that nothing reads, and what you probably
  meant. Members of events that are not documented are kept, within the bounds of `metadata`.
- A `POST` that creates something takes an `Idempotency-Key`: a repeat within 24 hours gets the first answer.
- Lists answer `{data, total, page, limit, hasMore, nextCursor}`.
"""
_REFERENCE: Final = "#/components/schemas/{name}"


class ErrorMember(Wire, frozen=True):
    """What went wrong."""

    code: str
    message: str
    #: Messages by field path, or hints such as `retryAfter` and `requestId`.
    details: dict[str, Any]


class ErrorBody(Wire, frozen=True):
    """The body of every error."""

    error: ErrorMember


# One row for each class of refusal: the name of its response component, and when it is given.
_REFUSALS: Final[tuple[tuple[type[Refusal], str, str], ...]] = (
    (
        errors.Invalid,
        "Invalid",
        "The shape of the request is wrong; `details` maps field to message.",
    ),
    (errors.Unauthorized, "Unauthorized", "The credential is missing or not valid."),
    (
        errors.Forbidden,
        "Forbidden",
        "The key lacks `details.scope`, or the product is not enabled.",
    ),
    (errors.NotFound, "NotFound", "There is no such resource for this tenant."),
    (errors.Conflict, "Conflict", "The request clashes with what is stored; `details.reason` says how."),
    (errors.PayloadTooLarge, "PayloadTooLarge", "The body is over the limit."),
    (errors.UnsupportedMediaType, "UnsupportedMediaType", "The body is not `application/json` in UTF-8."),
    (
        errors.Unprocessable,
        "Unprocessable",
        "Well-formed, yet wrong in meaning; see `details`.",
    ),
    (
        errors.LimitReached,
        "LimitReached",
        "Throttle or quota is used up; wait `details.retryAfter` seconds.",
    ),
    (errors.InternalError, "InternalError", "A fault of the service; `details.requestId` finds it."),
    (errors.BadGateway, "BadGateway", "An engine this endpoint depends on is down."),
    (
        errors.Unavailable,
        "Unavailable",
        "Not able to answer now; wait `details.retryAfter` seconds.",
    ),
    (errors.GatewayTimeout, "GatewayTimeout", "An engine this endpoint depends on did not answer in time."),
)

_HEADERS: Final[dict[str, tuple[str, str]]] = {
    "X-Request-Id": ("string", "The caller's request id when it was usable, else one made for the request."),
    "X-Quota-Limit": ("integer", "Requests that the tenant has in an hour of the clock."),
    "X-Quota-Remaining": ("integer", "Requests left of them."),
    "X-Quota-Reset": ("integer", "Unix seconds at which the quota is full again."),
    "X-RateLimit-Limit": ("integer", "Requests that the key has in any 60 seconds."),
    "X-RateLimit-Remaining": ("integer", "Requests left of them at this moment."),
    "X-RateLimit-Reset": ("integer", "Unix seconds at which the key has more room."),
    "Retry-After": ("integer", "Seconds to wait before trying again."),
    "Allow": ("string", "The methods that the path takes."),
}
_LIMIT_HEADERS: Final = tuple(name for name in _HEADERS if name.startswith(("X-Quota", "X-RateLimit")))
_EXTRA_HEADERS: Final = {429: ("Retry-After",), 503: ("Retry-After",), 405: ("Allow",)}
# Refusals that are given before it is known who calls, and so carry no limit headers.
_BEFORE_ACCESS: Final = (401, 500, 503)
_SECURITY: Final[dict[Access, list[JSON]]] = {
    Access.NONE: [],
    Access.KEY: [{"apiKey": []}],
    Access.TOKEN: [{"sdkToken": []}],
}

_PATH_PARAMETERS: Final[dict[str, str]] = {
    "id": "The id of the resource.",
    "email": "A customer's e-mail address, percent-encoded.",
    "fingerprint": "A device fingerprint, percent-encoded.",
    "ip": "An IP address or a CIDR range, percent-encoded (`/` as `%2F`).",
    "jobId": "The id of the job.",
    "externalEventId": "The id under which the event was sent.",
}


def build_openapi(table: RouteTable, version: str) -> bytes:
    """Return the OpenAPI document of a route table as JSON; equal tables give equal bytes."""
    return encode(describe(table.routes, version))


def describe(routes: tuple[Route, ...], version: str) -> JSON:
    """Return the OpenAPI document as a value. Raises `ValueError` when two schemas share a name."""
    shown = [route for route in routes if route.in_openapi]
    types: list[type] = [ErrorBody]
    for route in shown:
        kinds = (route.takes, route.answers, *(kind for _, kind in route.otherwise))
        types += [kind for kind in dict.fromkeys(kinds) if kind is not None and kind not in types]
    references, schemas = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    reference = dict(zip(types, references, strict=True))
    paths: JSON = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, reference)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Vettance",
            "version": version,
            "summary": "Fraud and AML risk decisions.",
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in shown)],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "responses": _responses(),
            "headers": _headers(),
            "parameters": _shared_parameters(),
            "securitySchemes": {
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-key",
                    "description": "A key of the tenant, kept on servers only.",
                },
                "sdkToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A token of `POST /api/v1/websdk/tokens`, good for 15 minutes.",
                },
            },
        },
    }


def refusals_of(route: Route) -> tuple[int, ...]:
    """Return every error status that a route can answer, in ascending order."""
    statuses = {500, *route.refusals}
    if route.access is not Access.NONE:
        statuses |= {401, 429, 503}
    if route.access is Access.KEY or route.key_setting is not None:
        statuses.add(403)  # The key lacks the scope, or the tenant the product.
    if route.takes is not None:
        statuses |= {400, 413, 415}
    if route.query is not None or route.idempotent:
        statuses.add(400)
    names = path_parameters(route)
    if any(is_id_name(name) for name in names):
        statuses.add(404)
    if not all(is_id_name(name) for name in names):
        statuses.add(400)
    return tuple(sorted(statuses))


def _operation(route: Route, reference: dict[type, JSON]) -> JSON:
    operation: JSON = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": _parameters(route),
        "responses": {
            str(route.status): _answer(
                route, "Success.", reference[route.answers] if route.answers else None
            ),
            **{
                str(status): _answer(route, "Not so; the body says why.", reference[kind])
                for status, kind in route.otherwise
            },
            **{str(status): {"$ref": _response_reference(route, status)} for status in refusals_of(route)},
        },
    }
    if not operation["parameters"]:
        del operation["parameters"]
    if route.takes is not None:
        media = {"schema": reference[route.takes]}
        if (example := getattr(route.takes, "EXAMPLE", None)) is not None:
            media["example"] = example
        operation["requestBody"] = {
            "required": not route.may_lack_body,
            "content": {"application/json": media},
        }
    if route.deprecated:
        operation["deprecated"] = True
    operation["security"] = _SECURITY[route.access]
    return operation


def _operation_id(route: Route) -> str:
    """Name an operation for generated clients: `POST /api/v1/lists/ip` is `post_lists_ip`."""
    words = re.findall(r"[A-Za-z0-9]+", route.path.removeprefix("/api/v1"))
    snake = (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower() for word in words)
    return "_".join((route.method.lower(), *snake))


def _parameters(route: Route) -> list[JSON]:
    parameters: list[JSON] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS.get(name, "Part of the path, percent-encoded."),
            "schema": {"type": "string", "minLength": 1},
        }
        for name in path_parameters(route)
    ]
    for parameter in parameters_of(route.query) if route.query is not None else ():
        shown: JSON = {"name": parameter.name, "in": "query", "schema": parameter.schema}
        if parameter.description:
            shown["description"] = parameter.description
        if parameter.required:
            shown["required"] = True
        parameters.append(shown)
    if route.idempotent:
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
    return parameters


def _answer(route: Route, description: str, schema: JSON | None) -> JSON:
    names = ("X-Request-Id",) if route.access is Access.NONE else ("X-Request-Id", *_LIMIT_HEADERS)
    response: JSON = {"description": description, "headers": _header_references(names)}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
    return response


def _response_reference(route: Route, status: int) -> str:
    """Point at a shared response; those of routes without a credential come without limit headers."""
    name = next(name for kind, name, _ in _REFUSALS if kind.status == status)
    suffix = "Open" if route.access is Access.NONE and status not in _BEFORE_ACCESS else ""
    return f"#/components/responses/{name}{suffix}"


def _responses() -> JSON:
    responses: JSON = {}
    for kind, name, description in _REFUSALS:
        extra = _EXTRA_HEADERS.get(kind.status, ())
        limits = () if kind.status in _BEFORE_ACCESS else _LIMIT_HEADERS
        responses[name] = _refusal_response(kind, description, ("X-Request-Id", *limits, *extra))
        if limits:
            responses[f"{name}Open"] = _refusal_response(kind, description, ("X-Request-Id", *extra))
    return responses


def _refusal_response(kind: type[Refusal], description: str, headers: tuple[str, ...]) -> JSON:
    schema = {
        "allOf": [
            {"$ref": _REFERENCE.format(name="ErrorBody")},
            {"properties": {"error": {"properties": {"code": {"const": kind.code}}}}},
        ]
    }
    return {
        "description": description,
        "headers": _header_references(headers),
        "content": {"application/json": {"schema": schema}},
    }


def _header_references(names: tuple[str, ...]) -> JSON:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _headers() -> JSON:
    return {
        name: {"description": description, "required": True, "schema": {"type": kind}}
        for name, (kind, description) in _HEADERS.items()
    }


def _shared_parameters() -> JSON:
    return {
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "Repeats of a key within 24 hours get the first answer and have no second effect.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
        }
    }
