"""One page for each group of endpoints, made from the service's own OpenAPI document."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from website.page_sources import PROJECT

Json = Mapping[str, Any]
_METHODS: Final = ("get", "post", "put", "patch", "delete")


def api_pages() -> dict[str, str]:
    """Return the pages of the API: an index, and one for each tag of the document."""
    document = json.loads((PROJECT / "clients" / "openapi.json").read_text("utf-8"))
    pages: dict[str, str] = {}
    rows = []
    for tag in document["tags"]:
        operations = list(_operations(document, tag["name"]))
        if not operations:
            continue
        name = f"api-{tag['name'].lower().replace(' ', '-')}"
        rows.append(f"| [{tag['name']}]({name}.md) | {len(operations)} | {tag.get('description', '')} |")
        body = "\n".join(_operation(document, *operation) for operation in operations)
        pages[name] = f"# API: {tag['name']}\n\n{tag.get('description', '')}\n\n{body}"
    pages["api"] = (
        f"# API\n\n{document['info']['description']}\nThe document itself is served at `/openapi.json`,"
        " a page to try it at `/docs`.\n\n| group | endpoints | what for |\n|---|---:|---|\n"
        + "\n".join(rows)
        + "\n"
        f"\n```{{toctree}}\n:hidden:\n\n{chr(10).join(sorted(pages))}\n```\n"
    )
    return pages


def _operations(document: Json, tag: str) -> Iterator[tuple[str, str, Json]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item and tag in item[method].get("tags", ()):
                yield method.upper(), path, item[method]


def _operation(document: Json, method: str, path: str, operation: Json) -> str:
    parts = [f"## {method} {path}\n", operation.get("summary", "") + ".\n"]
    if operation.get("description"):
        parts.append(operation["description"] + "\n")
    parameters = [_resolved(document, one) for one in operation.get("parameters", ())]
    if parameters:
        parts.append("| parameter | in | takes | meaning |\n|---|---|---|---|")
        parts += [
            f"| `{one['name']}` | {one['in']} | {_type(document, one['schema'])} |"
            f" {_cell(one.get('description', ''))} |"
            for one in parameters
        ]
        parts.append("")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        parts += ["**Request body**\n", *_members(document, body["schema"])]
        examples: list[Json] = [*body.get("examples", {}).values()]
        example = body.get("example", examples[0].get("value") if examples else None)
        if example is not None:
            parts.append(f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```\n")
    for status, answer in operation["responses"].items():
        content = _resolved(document, answer).get("content", {}).get("application/json")
        if status.startswith("2") and content:
            parts += [f"**Answer {status}**\n", *_members(document, content["schema"])]
    refusals = [status for status in operation["responses"] if not status.startswith("2")]
    if refusals:
        parts.append(f"Refusals: {', '.join(refusals)} ([errors](errors.md)).\n")
    return "\n".join(parts)


def _members(document: Json, schema: Json) -> list[str]:
    """Write the members of an object as a table, or the type of anything else."""
    found = _resolved(document, schema)
    properties = found.get("properties")
    if not properties:
        return [f"{_type(document, schema)}\n"]
    required = set(found.get("required", ()))
    rows = [
        f"| `{name}` | {_type(document, one)} | {'required' if name in required else ''} |"
        f" {_cell(one.get('description', ''))} |"
        for name, one in properties.items()
    ]
    return ["| member | type | | meaning |\n|---|---|---|---|", *rows, ""]


def _type(document: Json, schema: Json) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(document, one) for one in schema[several]))
    if "$ref" in schema:
        found = _resolved(document, schema)
        return _type(document, found) if "properties" not in found else "object"
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"array of {_type(document, schema.get('items', {}))}"
    bounds = [
        f"{word} {schema[key]}"
        for key, word in (("minimum", "≥"), ("maximum", "≤"), ("maxLength", "length ≤"))
        if key in schema
    ]
    return " ".join((kind, *bounds))


def _resolved(document: Json, value: Json) -> Json:
    while "$ref" in value:
        found: Any = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        value = found
    return value


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
