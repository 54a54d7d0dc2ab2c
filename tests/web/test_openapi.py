"""The OpenAPI document says what the route table does, in the form its standard asks for."""

import json
import re
from urllib.parse import quote

import jsonschema_rs
import msgspec
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from tests.web.raw_client import RawClient
from tests.web.sample_service import NoteBody, Notebook
from vettance.errors import Refusal
from vettance.web.openapi import build_openapi, describe, refusals_of
from vettance.web.routing import RouteTable, path_parameters
from vettance.wire.payload import Wire


@pytest.fixture(scope="module")
def table():
    return Notebook().table


@pytest.fixture(scope="module")
def document(table):
    return json.loads(build_openapi(table, "1.2.3"))


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(value):
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for member in value:
            yield from references(member)


def resolve(document, reference):
    value = document
    for part in reference.removeprefix("#/").split("/"):
        value = value[part]
    return value


def test_the_document_is_valid_openapi_3_1(document):
    jsonschema_rs.validator_for(OPENAPI_31).validate(document)
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "1.2.3"


def test_the_page_begins_with_how_to_get_a_key_and_what_errors_look_like(document):
    about = document["info"]["description"]
    assert "vettance key create --tenant" in about
    assert '{"error": {"code", "message", "details"}}' in about


def test_every_schema_is_valid_json_schema(document):
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema | {"$schema": "https://json-schema.org/draft/2020-12/schema"})


def test_every_reference_leads_somewhere_and_every_component_is_reached(document):
    used = set(references(document))
    for reference in used:
        assert resolve(document, reference)
    for kind in ("schemas", "headers", "parameters"):
        for name in document["components"][kind]:
            unused = name in ("Allow",) or f"#/components/{kind}/{name}" in used
            assert unused, name


def test_the_documented_operations_are_the_routes(document, table):
    shown = {(route.method, route.path) for route in table.routes if route.in_openapi}
    assert {(method, path) for method, path, _ in operations(document)} == shown


def test_operation_ids_are_unique_and_fit_for_generated_clients(document):
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    assert "post_notes" in names


def test_every_path_parameter_is_declared(document):
    for _, path, operation in operations(document):
        declared = [p["name"] for p in operation.get("parameters", ()) if p.get("in") == "path"]
        assert declared == re.findall(r"{(\w+)}", path)


def test_the_open_pages_ask_for_no_key_and_everything_else_does(document):
    for _, path, operation in operations(document):
        assert operation["security"] == ([{"apiKey": []}] if path.startswith("/api/v1/") else [])
    scheme = document["components"]["securitySchemes"]["apiKey"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "x-api-key")


def test_query_parameters_stand_as_they_are_read(document):
    parameters = {p["name"]: p for p in document["paths"]["/api/v1/notes"]["get"]["parameters"]}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 50}
    assert parameters["colour"]["schema"] == {"type": "string", "enum": ["red", "blue"]}
    assert parameters["from"]["schema"]["type"] == "number"


def test_a_body_is_documented_by_its_struct(document):
    body = document["paths"]["/api/v1/notes"]["post"]["requestBody"]
    assert body["required"] is True
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/NoteBody"}
    assert document["components"]["schemas"]["NoteBody"]["required"] == ["text"]


def test_an_idempotent_route_names_its_header(document):
    reference = {"$ref": "#/components/parameters/IdempotencyKey"}
    assert reference in document["paths"]["/api/v1/notes"]["post"]["parameters"]
    assert reference not in document["paths"]["/api/v1/notes"]["get"]["parameters"]


def test_each_route_documents_the_refusals_that_can_meet_it(table):
    statuses = {(route.method, route.path): refusals_of(route) for route in table.routes}
    assert statuses["POST", "/api/v1/notes"] == (400, 401, 403, 413, 415, 422, 429, 500, 503)
    assert statuses["GET", "/api/v1/notes"] == (400, 401, 403, 429, 500, 503)
    assert statuses["GET", "/api/v1/notes/{id}"] == (401, 403, 404, 429, 500, 503)
    assert statuses["POST", "/api/v1/notes/by-text/{text}"] == (400, 401, 403, 429, 500, 503)
    assert statuses["GET", "/api/v1/aml/notes"] == (400, 401, 403, 429, 500, 503)
    assert statuses["GET", "/healthz"] == (500,)
    assert statuses["GET", "/readyz"] == (500,)


def test_an_answer_other_than_success_is_documented_with_its_own_schema(document):
    responses = document["paths"]["/readyz"]["get"]["responses"]
    contents = [responses[status]["content"]["application/json"]["schema"] for status in ("200", "503")]
    assert contents == [{"$ref": "#/components/schemas/Readiness"}] * 2


def test_every_class_of_refusal_has_a_response(document):
    codes = set()
    for name, response in document["components"]["responses"].items():
        schema = response["content"]["application/json"]["schema"]
        codes.add(schema["allOf"][1]["properties"]["error"]["properties"]["code"]["const"])
        assert "X-Request-Id" in response["headers"], name
    missing = {"METHOD_NOT_ALLOWED"}  # An undocumented method has no operation whose answer it could be.
    assert {kind.code for kind in Refusal.__subclasses__()} - codes == missing


def test_equal_tables_give_equal_bytes():
    assert build_openapi(Notebook().table, "1") == build_openapi(Notebook().table, "1")


def test_two_schemas_of_one_name_are_kept_apart():
    class NoteBody2(Wire, tag=False):
        other: int

    NoteBody2.__name__ = NoteBody2.__qualname__ = "NoteBody"
    table = Notebook().table
    clash = msgspec.structs.replace(table.routes[0], path="/api/v1/other", takes=NoteBody2)
    schemas = describe((*table.routes, clash), "1")["components"]["schemas"]
    assert sum(NoteBody.__name__ in name for name in schemas) == 2


def test_the_document_is_served_to_anyone_and_need_not_be_fetched_twice(port):
    client = RawClient(port)
    answer = client.ask("GET", "/openapi.json")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    again = client.ask("GET", "/openapi.json", headers=[("if-none-match", answer.headers["etag"])])
    assert (again.status, again.content) == (304, b"")
    assert "content-length" not in again.headers
    assert client.ask("GET", "/openapi.json", headers=[("if-none-match", '"other"')]).status == 200
    client.close()


def test_live_answers_have_the_documented_status_schema_and_headers(client, document, table):
    note = client.ask("POST", "/api/v1/notes", {"text": "a"}).json["id"]
    checked = 0
    for route in table.routes:
        if not route.in_openapi or route.method == "DELETE":
            continue
        path = route.path
        for name in path_parameters(route):
            path = path.replace(f"{{{name}}}", quote(note))
        body = {"text": "b"} if route.takes is not None else None
        answer = client.ask(route.method, path, body)
        documented = document["paths"][route.path][route.method.lower()]["responses"][str(answer.status)]
        if "$ref" in documented:
            documented = resolve(document, documented["$ref"])
        for header in documented["headers"]:
            assert header.lower() in answer.headers
        if "content" in documented:
            schema = documented["content"]["application/json"]["schema"]
            jsonschema_rs.validator_for({**schema, "components": document["components"]}).validate(
                answer.json
            )
            checked += 1
    assert checked >= 6


def test_routes_without_a_credential_document_no_limit_headers(document):
    assert list(document["paths"]["/healthz"]["get"]["responses"]["200"]["headers"]) == ["X-Request-Id"]


def test_a_hidden_route_is_not_documented(document):
    assert not any(path.startswith(("/docs", "/api/v1/fail")) for path in document["paths"])


def test_an_empty_table_has_a_document_too():
    assert json.loads(build_openapi(RouteTable(()), "1"))["paths"] == {}
