"""The published script: served from the package, always the same, small, and with nobody else to talk to."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.live import Service
from vettance.websdk.pages import STATIC, newest_version

NEWEST = STATIC / newest_version()
MANIFESTS = sorted(STATIC.glob("*/manifest.json"))
SCRIPTS = sorted(path for path in NEWEST.iterdir() if path.suffix in (".js", ".mjs"))
LIMITS = {"core": 6 * 1024, "full": 25 * 1024}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_the_files_of_a_version_are_those_of_its_manifest(manifest: Path) -> None:
    told = json.loads(manifest.read_text())
    assert told["version"] == manifest.parent.name
    for name, said in told["files"].items():
        content = (manifest.parent / name).read_bytes()
        assert said["bytes"] == len(content)
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
        assert said["integrity"] == f"sha384-{digest}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_build_stays_within_its_budget(script: Path) -> None:
    limit = LIMITS["core" if "core" in script.name else "full"]
    assert len(gzip.compress(script.read_bytes(), 9)) <= limit


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_build_knows_no_address_to_call_and_needs_nothing_unsafe(script: Path) -> None:
    text = script.read_text("utf-8")
    assert not re.findall(r"https?://[\w.]+", text)
    for unsafe in (
        "sendBeacon",
        "XMLHttpRequest",
        "eval(",
        "new Function",
        "innerHTML",
        "WebSocket",
        "openfpcdn",
    ):
        assert unsafe not in text, unsafe


def test_a_version_may_be_cached_for_ever_and_the_newest_is_asked_for_again(service: Service) -> None:
    name = "vettance-core.mjs"
    kept = service.call("GET", f"/sdk/v1/{newest_version()}/{name}", key=None)
    newest = service.call("GET", f"/sdk/v1/{name}", key=None)
    assert kept.status == newest.status == 200
    assert kept.body == newest.body == (NEWEST / name).read_bytes()
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert newest.headers["cache-control"] == "no-cache"
    for answer in (kept, newest):
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["x-content-type-options"] == "nosniff"
    again = service.call(
        "GET", f"/sdk/v1/{name}", key=None, headers={"If-None-Match": newest.headers["etag"]}
    )
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("header", "zipped"),
    [("gzip, deflate, br", True), ("br;q=1.0, gzip;q=0.8", True), ("gzip;q=0", False), ("identity", False)],
)
def test_a_script_is_sent_small_to_those_who_take_it_so(service: Service, header: str, zipped: bool) -> None:
    path = f"/sdk/v1/{newest_version()}/vettance-core.js"
    answer = service.call("GET", path, key=None, headers={"Accept-Encoding": header})
    plain = (NEWEST / "vettance-core.js").read_bytes()
    assert ("content-encoding" in answer.headers) is zipped
    assert answer.headers["vary"] == "accept-encoding"
    assert (gzip.decompress(answer.body) if zipped else answer.body) == plain
    assert not zipped or len(answer.body) <= LIMITS["core"]


@pytest.mark.parametrize(
    "path", ["nothing.js", "9.9.9/vettance-core.js", "..%2Fapi.py", "1.0.0/..%2F..%2Fapi.py", "1.0.0/", "%00"]
)
def test_nothing_else_is_served(service: Service, path: str) -> None:
    assert service.call("GET", f"/sdk/v1/{path}", key=None).status in (400, 404)
