"""The open pages: life, readiness, and the documentation page that needs no network."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import vettance.web
from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving

SWAGGER = Path(vettance.web.__file__).parent / "static" / "swagger"


@pytest.fixture
def anyone(port):
    client = RawClient(port)
    yield client
    client.close()


def test_a_living_process_says_so(anyone):
    answer = anyone.ask("GET", "/healthz")
    assert (answer.status, answer.json) == (200, {"status": "ok"})
    assert anyone.ask("HEAD", "/healthz").status == 200


def test_a_ready_service_names_every_check(anyone):
    answer = anyone.ask("GET", "/readyz")
    assert answer.status == 200
    assert answer.json == {
        "status": "ready",
        "checks": [{"name": name, "ok": True, "reason": None} for name in ("store", "rules")],
    }


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("no rule set is loaded", "no rule set is loaded"),
        ("hangs", "did not answer within 1 s"),
        ("is down", "cannot be reached"),
    ],
)
def test_a_service_that_is_not_ready_says_why(state, reason):
    notebook = Notebook()
    notebook.not_ready["store"] = state
    with serving(notebook.edge) as port:
        client = RawClient(port)
        answer = client.ask("GET", "/readyz")
        assert answer.status == 503
        assert answer.json["status"] == "unready"
        assert answer.json["checks"][0] == {"name": "store", "ok": False, "reason": reason}
        assert answer.json["checks"][1]["ok"] is True
        assert client.ask("GET", "/healthz").status == 200
        client.close()
    assert not notebook.errors


def test_the_page_loads_only_files_of_this_service(anyone):
    answer = anyone.ask("GET", "/docs")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    text = answer.content.decode()
    wanted = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert len(wanted) == 5
    assert all(url.startswith("/") or url == "data:," for url in wanted)
    assert "{" not in text, "every place for a digest is filled"
    for url in wanted:
        if not url.startswith("/docs/"):
            continue
        file = anyone.ask("GET", url)
        kind = "text/css" if ".css" in url else "text/javascript"
        assert file.status == 200
        assert file.headers["content-type"] == f"{kind}; charset=utf-8"
        assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert file.headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_inline_script_and_forbids_it(anyone):
    answer = anyone.ask("GET", "/docs")
    assert not re.search(rb"<script(?![^>]*\bsrc=)", answer.content)
    assert b"style=" not in answer.content
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_a_file_is_kept_for_ever_only_under_its_own_digest(anyone):
    plain = anyone.ask("GET", "/docs/start.js")
    assert plain.headers["cache-control"] == "no-cache"
    assert anyone.ask("GET", "/docs/start.js?v=0").headers["cache-control"] == "no-cache"
    known = [("if-none-match", plain.headers["etag"])]
    assert anyone.ask("GET", "/docs/start.js", headers=known).status == 304
    assert anyone.ask("HEAD", "/docs/start.js").headers["content-length"] == str(len(plain.content))


@pytest.mark.parametrize(
    "path",
    ["/docs/", "/docs/README.md", "/docs/..%2f..%2fpages.py", "/docs/%2e%2e", "/docs/a/b", "/docs/start.js/"],
)
def test_nothing_else_is_served_from_the_folder(anyone, path):
    assert anyone.ask("GET", path).status == 404


def test_the_vendored_files_are_those_that_were_published():
    note = (SWAGGER / "README.md").read_text()
    sums = dict(re.findall(r"`([\w.-]+)` \| `([0-9a-f]{64})`", note))
    assert set(sums) == {"swagger-ui-bundle.js", "swagger-ui.css"}
    for name, digest in sums.items():
        assert hashlib.sha256((SWAGGER / name).read_bytes()).hexdigest() == digest
    assert "Apache License" in (SWAGGER / "LICENSE").read_text()


def test_the_init_file_is_valid_script():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = SWAGGER.parent / "docs" / "start.js"
    assert subprocess.run([node, "--check", str(script)], timeout=30, check=False).returncode == 0
