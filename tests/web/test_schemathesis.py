"""A schema-driven fuzzer over the served document finds no 5xx, no undocumented answer, no broken promise.

Continuous integration repeats one seed; `make fuzz` takes a new one each time, and more examples.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.sample_service import Notebook, serving

SEED = os.environ.get("FUZZ_SEED", "1")
TIMES = int(os.environ.get("FUZZ_TIMES", "1"))  # how many times the examples, and the time, of each test

# `positive_data_acceptance` is left out: bounds of size, depth and text that no store can keep are refused
# (400, 422), and JSON Schema has no words for them.
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
    "use_after_free",
)


def fuzz(base_url: str, api_key: str, folder: Path, *, examples: int, seconds: int) -> None:
    """Run the fuzzer with `examples` for each operation; fail with its report when it finds anything."""
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"{base_url}/openapi.json",
            "--header",
            f"x-api-key: {api_key}",
            "--checks",
            ",".join(CHECKS),
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            str(examples * TIMES),
            "--seed",
            SEED,
            "--continue-on-failure",
            "--generation-database",
            "none",
            "--no-shrink",
            "--no-color",
            "--warnings",
            "off",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds * TIMES,
        check=False,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert done.returncode == 0, f"seed {SEED}\n{done.stdout[-20_000:]}{done.stderr[-2_000:]}"
    assert "Loaded specification" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900 * TIMES)
def test_the_edge_and_its_document_agree_under_fuzzing(tmp_path):
    notebook = Notebook()
    with serving(notebook.edge) as port:
        key = notebook.new_key(throttle=10**9, quota=10**9, aml=True)
        fuzz(f"http://127.0.0.1:{port}", key, tmp_path, examples=25, seconds=800)
    assert not notebook.errors


@pytest.mark.slow
@pytest.mark.timeout(900 * TIMES)
def test_the_whole_service_and_its_document_agree_under_fuzzing(service, tmp_path):
    _, key = service.new_tenant("Fuzzed")
    before = len(service.log)
    try:
        fuzz(service.base_url, key, tmp_path, examples=30, seconds=800)
    finally:
        print("".join(service.log[before:])[-20_000:])
    assert service.get("/readyz", key=None).status == 200
    assert not [line for line in service.log[before:] if "request_failed" in line]
