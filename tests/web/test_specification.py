"""Route table, OpenAPI document and specification name the same endpoints."""

import re

import pytest

from tests.web.specification import ADDITIONS, ENDPOINTS, specification_paths


@pytest.fixture(scope="module")
def document(service):
    return service.get("/openapi.json", key=None).json


def documented(document) -> dict[tuple[str, str], dict]:
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def filled(path: str) -> str:
    """Put a value that names nothing into each parameter of a path."""
    return re.sub(r"{\w+}", "none", path)


def test_the_document_names_every_endpoint_that_must_exist_and_no_other(document):
    assert set(documented(document)) - ADDITIONS == specification_paths()


def test_success_has_the_status_that_the_specification_gives(document):
    operations = documented(document)
    for row in ENDPOINTS:
        responses = operations[row.method, row.path]["responses"]
        assert [status for status in responses if status < "400"] == [str(row.status)], row.path


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: f"{row.method} {row.path}")
def test_every_endpoint_that_must_exist_answers_and_asks_for_a_key(service, row):
    answer = service.call(row.method, filled(row.path), key=None)
    assert answer.status == 401
    assert answer.json["error"]["code"] == "UNAUTHORIZED"


@pytest.mark.parametrize("path", sorted({row.path for row in ENDPOINTS}))
def test_a_method_that_the_document_does_not_name_is_not_answered(service, document, path):
    named = {method for method, known in documented(document) if known == path}
    answer = service.call("PATCH", filled(path))
    assert answer.status == (405 if named else 404) or path_is_shadowed(document, path)
    if named:
        allowed = set(answer.headers["allow"].split(", ")) - {"HEAD"}
        assert allowed == named


def path_is_shadowed(document, path: str) -> bool:
    """Tell whether a path that does not exist yet is met by a parameter of one that does."""
    shapes = (re.sub(r"{\w+}", "[^/]+", known) for known in document["paths"])
    return any(re.fullmatch(shape, filled(path)) for shape in shapes)


def test_the_deprecated_path_is_marked(document):
    operation = documented(document)["POST", "/api/v1/events/ingest"]
    assert operation.get("deprecated") is True


def test_every_operation_has_a_summary_a_tag_and_refusals(document):
    for (method, path), operation in documented(document).items():
        assert operation["summary"], path
        assert operation["tags"], path
        if path.startswith("/api/v1/"):
            assert {"401", "429", "500", "503"} <= set(operation["responses"]), (method, path)
