"""The script of the browser SDK, served from the package: each version for ever, and the newest by itself."""

import functools
import gzip
import re
from pathlib import Path
from typing import Final

from vettance.errors import NotFound
from vettance.web.pages import cached
from vettance.web.routing import Access, Call, Handler, Page, Route

STATIC: Final = Path(__file__).parent / "static"
_VERSION: Final = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}", re.ASCII)
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".ts": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
}
# Integrity checks of scripts from another origin need CORS; these files are the same for everybody.
_OPEN: Final = (
    ("access-control-allow-origin", "*"),
    ("cross-origin-resource-policy", "cross-origin"),
    ("x-content-type-options", "nosniff"),
    ("vary", "accept-encoding"),
)
_ZIPPED: Final = (*_OPEN, ("content-encoding", "gzip"))
_TAKES_GZIP: Final = re.compile(rb"(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?:1|0\.0*[1-9]))", re.IGNORECASE)


@functools.cache
def sdk_files() -> dict[tuple[str, str], Path]:
    """Return the published files by version and name."""
    return {
        (folder.name, file.name): file
        for folder in STATIC.iterdir()
        if folder.is_dir() and _VERSION.fullmatch(folder.name)
        for file in folder.iterdir()
        if file.suffix in _TYPES
    }


@functools.cache
def newest_version() -> str:
    """Return the newest published version."""
    versions = {version for version, _ in sdk_files()}
    return max(versions, key=lambda version: [int(part) for part in version.split(".")])


@functools.cache
def _content(version: str, name: str) -> bytes:
    return sdk_files()[version, name].read_bytes()


@functools.cache
def _zipped(version: str, name: str) -> bytes:
    return gzip.compress(_content(version, name), 9, mtime=0)


async def _newest_file(call: Call) -> Page:
    return _answer(call, newest_version(), call.path["file"], immutable=False)


async def _file(call: Call) -> Page:
    return _answer(call, call.path["version"], call.path["file"], immutable=True)


def _answer(call: Call, version: str, name: str, *, immutable: bool) -> Page:
    if (version, name) not in sdk_files():
        raise NotFound
    kind = _TYPES[Path(name).suffix]
    if _TAKES_GZIP.search(call.headers.get(b"accept-encoding", b"")):
        return cached(call, _zipped(version, name), kind, immutable=immutable, headers=_ZIPPED)
    return cached(call, _content(version, name), kind, immutable=immutable, headers=_OPEN)


def sdk_routes() -> tuple[Route, ...]:
    """The rows of the route table."""
    return (
        _open("/sdk/v1/{file}", _newest_file, "A file of the newest browser SDK"),
        _open("/sdk/v1/{version}/{file}", _file, "A file of one version of the browser SDK"),
    )


def _open(path: str, handler: Handler, summary: str) -> Route:
    return Route("GET", path, handler, summary, "Browser SDK", access=Access.NONE, in_openapi=False)
