"""The endpoints of the document as both clients see them: a name, a path, what goes in and what comes out."""

import dataclasses
import json
import re
from typing import Any, Literal

from clients.generate.document import CLIENTS, JSON

#: The name of each endpoint's method in the clients, by its `operationId`. A name stays once it is released;
#: endpoints that are new get one made from their path, which may be bettered before the next release.
NAMES = CLIENTS / "generate" / "names.json"
#: POSTs without an `Idempotency-Key` that an id in the body keeps from having a second effect.
_REPEATABLE = frozenset({"post_aml_events", "post_websdk_signals"})
#: Endpoints that answer with another type than the document can say, beside the one it says.
_ALSO_TEXT = frozenset({"get_aml_cases_id_export"})
_REPEAT = Literal["always", "with_key", "never"]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a query; `choices` are the values it may have, if they are few."""

    wire_name: str
    kind: str
    choices: tuple[str, ...]
    description: str
    required: bool


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One endpoint. `item` is the type of one row where the endpoint answers in pages."""

    id: str
    name: str
    method: str
    path: str
    summary: str
    path_names: tuple[str, ...]
    query: tuple[Parameter, ...]
    body: str | None
    body_required: bool
    answer: str | None
    item: str | None
    also_text: bool
    credential: Literal["key", "token", "none"]
    repeat: _REPEAT
    takes_key: bool
    deprecated: bool


def endpoints_of(document: JSON) -> list[Endpoint]:
    """Return all endpoints in the order of the document."""
    names = json.loads(NAMES.read_text("utf-8"))
    found = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = names.get(operation["operationId"]) or name_from(method.upper(), path, document, operation)
            found.append(_endpoint(document, name, method.upper(), path, operation))
    return found


def name_new_endpoints(document: JSON) -> None:
    """Give every endpoint that has no name one, and keep it."""
    names = json.loads(NAMES.read_text("utf-8")) if NAMES.exists() else {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] not in names:
                name = name_from(method.upper(), path, document, operation)
                names[operation["operationId"]] = operation["operationId"] if name in names.values() else name
    NAMES.write_text(json.dumps(dict(sorted(names.items())), indent=2) + "\n", "utf-8")


def name_from(method: str, path: str, document: JSON, operation: JSON) -> str:
    """Make a name from a path: `POST /rulesets/{id}/promote` is `promote_ruleset`."""
    parts = [_snake(part) for part in path.removeprefix("/api/v1").strip("/").split("/")]
    words = [part for part in parts if not part.startswith("{")]
    one = [*(_singular(word) for word in words[:-1]), words[-1]]
    on_one = parts[-1].startswith("{")
    if method == "GET":
        paged = _item_of(document, _success(operation)) is not None
        return "_".join(["list" if paged else "get", *one[:-1], _singular(one[-1]) if on_one else one[-1]])
    if (
        method == "POST"
        and len(parts) > 1
        and parts[-2].startswith("{")
        and _singular(words[-1]) == words[-1]
    ):
        return "_".join([words[-1], *one[:-1]])
    verb = {"POST": "create", "PUT": "replace", "PATCH": "change", "DELETE": "delete"}[method]
    return "_".join([verb, *one[:-1], _singular(one[-1])])


def _endpoint(document: JSON, name: str, method: str, path: str, operation: JSON) -> Endpoint:
    parameters = [_resolved(document, one) for one in operation.get("parameters", ())]
    takes_key = any(one["in"] == "header" and one["name"] == "Idempotency-Key" for one in parameters)
    body = operation.get("requestBody")
    answer = _success(operation)
    security = {scheme for one in operation["security"] for scheme in one}
    repeat: _REPEAT = "with_key" if takes_key else "never"
    if method != "POST" or operation["operationId"] in _REPEATABLE:
        repeat = "always"
    return Endpoint(
        id=operation["operationId"],
        name=name,
        method=method,
        path=path,
        summary=operation["summary"],
        path_names=tuple(re.findall(r"{([^{}]+)}", path)),
        query=tuple(_parameter(document, one) for one in parameters if one["in"] == "query"),
        body=_schema_name(body["content"]["application/json"]["schema"]) if body else None,
        body_required=bool(body and body["required"]),
        answer=answer,
        item=_item_of(document, answer),
        also_text=operation["operationId"] in _ALSO_TEXT,
        credential="token" if "sdkToken" in security else "key" if security else "none",
        repeat=repeat,
        takes_key=takes_key,
        deprecated=operation.get("deprecated", False),
    )


def _parameter(document: JSON, parameter: JSON) -> Parameter:
    schema = parameter["schema"]
    kinds = [_resolved(document, one) for one in schema.get("anyOf", [schema])]
    kind = next(one for one in kinds if one.get("type") != "null")
    text = parameter.get("description") or kind.get("description") or schema.get("description") or ""
    choices = tuple(one for one in kind.get("enum", ()) if isinstance(one, str))
    name = kind.get("type", "string")
    if {one.get("type") for one in kinds} & {"number"}:
        name = "number"
    return Parameter(parameter["name"], name, choices, text.strip(), parameter.get("required", False))


def _success(operation: JSON) -> str | None:
    """Return the name of the schema of the first answer that is a success; None where it says no schema."""
    answer = next(answer for status, answer in operation["responses"].items() if status < "400")
    content = answer.get("content", {}).get("application/json")
    return _schema_name(content["schema"]) if content else None


def _item_of(document: JSON, answer: str | None) -> str | None:
    """Return the name of the type of the rows of a page with a cursor; None for another type."""
    properties = document["components"]["schemas"][answer].get("properties", {}) if answer else {}
    if "nextCursor" not in properties or "data" not in properties:
        return None
    return _schema_name(properties["data"].get("items", {})) or "object"


def _schema_name(schema: JSON) -> str | None:
    return schema["$ref"].rpartition("/")[2] if "$ref" in schema else None


def _resolved(document: JSON, value: JSON) -> Any:
    if "$ref" not in value:
        return value
    found: Any = document
    for part in value["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def _snake(word: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower().replace("-", "_").replace(".", "_")


def _singular(word: str) -> str:
    if word.endswith(("ss", "us", "is", "stats")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
