"""What is generated for the clients is what the service's OpenAPI document gives."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clients.generate.document import CLIENTS, comparable
from tests.live import Service

ADVICE = "run `make clients` and commit what it writes (CONTRIBUTING.md, Endpoints and clients)"
PACKAGE = Path("python/src/vettance_client")
PYTHON_FILES = (
    "models.py",
    "bodies.py",
    "endpoints.py",
    "sync_methods.py",
    "async_methods.py",
    "openapi.json",
)


def test_the_document_of_the_clients_is_the_service_s(service: Service) -> None:
    served = comparable(service.get("/openapi.json", key=None).json)
    kept = json.loads((CLIENTS / "openapi.json").read_bytes())
    changed = {
        path
        for path in served["paths"] | kept["paths"]
        if served["paths"].get(path) != kept["paths"].get(path)
    }
    assert served == kept, f"the service's OpenAPI document is another one now {sorted(changed)}: {ADVICE}"


@pytest.mark.slow
def test_the_generated_files_of_the_python_client_are_what_the_generator_writes(tmp_path: Path) -> None:
    generate(tmp_path, "python")
    for name in PYTHON_FILES:
        written = (tmp_path / PACKAGE / name).read_bytes()
        assert written == (CLIENTS / PACKAGE / name).read_bytes(), f"{name} is not in step: {ADVICE}"


def generate(folder: Path, language: str) -> None:
    command = [sys.executable, "-m", "clients.generate", "--from", str(CLIENTS / "openapi.json")]
    command += ["--into", str(folder), "--only", language]
    done = subprocess.run(command, cwd=CLIENTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    not (CLIENTS / "typescript" / "node_modules").exists(), reason="`make typescript` was not run"
)
def test_the_generated_files_of_the_typescript_client_are_what_the_generators_write(tmp_path: Path) -> None:
    generate(tmp_path, "typescript")
    for name in ("schema.ts", "methods.ts"):
        written = (tmp_path / "typescript" / "src" / name).read_bytes()
        assert written == (CLIENTS / "typescript" / "src" / name).read_bytes(), (
            f"{name} is not in step: {ADVICE}"
        )
