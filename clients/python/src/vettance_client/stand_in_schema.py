"""JSON Schema as far as the OpenAPI document uses it: an example of what fits, faults of what does not."""

import re
from datetime import UTC, datetime
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_PREFIXES = {"eventId": "evt", "jobId": "job", "caseId": "cas", "alertId": "alr", "requestId": "req"}


def example_of(document: dict[str, Any], schema: dict[str, Any], name: str = "") -> Any:  # noqa: PLR0911 (one for each type)
    """Return a value that fits a schema: the first word of an enum, no rows, the time of now."""
    schema = _resolved(document, schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    if "anyOf" in schema:
        kinds = [_resolved(document, one) for one in schema["anyOf"]]
        return (
            None if any(one.get("type") == "null" for one in kinds) else example_of(document, kinds[0], name)
        )
    match schema.get("type"):
        case "object":
            wanted = schema.get("required", ())
            members = schema.get("properties", {})
            return {one: example_of(document, members[one], one) for one in wanted if one in members}
        case "array":
            return []
        case "integer":
            return int(schema.get("minimum", 0))
        case "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "string":
            return _text(schema, name)
    return {}


def faults_of(document: dict[str, Any], schema: dict[str, Any], value: Any, path: str = "") -> dict[str, str]:
    """Return a message for each member that does not fit, by its path."""
    schema = _resolved(document, schema)
    if "anyOf" in schema:
        tries = [faults_of(document, one, value, path) for one in schema["anyOf"]]
        return min(tries, key=len)
    if "enum" in schema and value not in schema["enum"]:
        return {path or "body": f"must be one of {', '.join(map(str, schema['enum']))}"}
    kinds = _TYPES.get(schema.get("type", ""))
    if kinds is not None and (
        not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
    ):
        return {path or "body": f"must be of the type {schema['type']}"}
    if isinstance(value, str) and not schema.get("minLength", 0) <= len(value) <= schema.get(
        "maxLength", 1 << 30
    ):
        return {path: "is too short or too long"}
    found: dict[str, str] = {}
    before = f"{path}." if path else ""
    if isinstance(value, dict):
        found |= {
            f"{before}{one}": "is required" for one in schema.get("required", ()) if value.get(one) is None
        }
        for name, member in schema.get("properties", {}).items():
            if value.get(name) is not None:
                found |= faults_of(document, member, value[name], f"{before}{name}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            found |= faults_of(document, schema["items"], item, f"{path}[{index}]")
    return found


def _text(schema: dict[str, Any], name: str) -> str:
    if name.endswith("At") or name in ("timestamp", "start"):
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if named := re.match(r"`([^`]+)`", schema.get("description", "")):
        return named[1]
    if name == "id" or name.endswith("Id"):
        return f"{_PREFIXES.get(name, 'id')}_{'0' * 31}1"
    if name.lower().endswith("url"):
        return "https://example.com/"
    return {"decision": "ALLOW", "country": "DE", "version": "1"}.get(name, name or "text")


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema
