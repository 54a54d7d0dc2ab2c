"""The OpenAPI document: taken from a running service, and cut to what a generator is to see."""

import copy
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CLIENTS = Path(__file__).parents[1]
_SCHEMAS = "#/components/schemas/"

JSON = dict[str, Any]


def document_of_the_service() -> JSON:
    """Start the service on an empty folder, and return the OpenAPI document it serves."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "vettance.cli", "serve", "--port", "0", "--data", folder]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
            assert service.stderr is not None
            try:
                for line in service.stderr:
                    if found := re.search(r"listens on (http://\S+)", line):
                        with urllib.request.urlopen(f"{found[1]}/openapi.json", timeout=10) as answer:
                            return comparable(json.load(answer))
            finally:
                service.terminate()
                service.stderr.read()
    raise SystemExit("the service did not start: try `vettance serve --data /tmp/empty`")


def read_document(path: Path) -> JSON:
    """Read a document from a file."""
    return comparable(json.loads(path.read_bytes()))


def comparable(document: JSON) -> JSON:
    """Return a document without what changes with every release of the service though no endpoint does."""
    return document | {"info": document["info"] | {"version": "v1"}}


def write_document(document: JSON, path: Path) -> None:
    """Write a document so that a change of it reads well."""
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def packed(document: JSON) -> bytes:
    """Return a document in as few bytes as JSON needs: it goes into a package."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def schemas_in(document: JSON, parts: Iterable[Any]) -> JSON:
    """Return the schemas that parts of a document refer to, and those that these refer to."""
    schemas: JSON = document["components"]["schemas"]
    found: set[str] = set()
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix(_SCHEMAS)
            if name in schemas and name not in found:
                found.add(name)
                waiting.append(schemas[name])
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return {name: copy.deepcopy(schemas[name]) for name in sorted(found)}


def only_schemas(schemas: JSON) -> JSON:
    """Return a document that has schemas and no endpoints."""
    info = {"title": "Vettance", "version": "v1"}
    return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}
