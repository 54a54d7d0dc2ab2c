"""Assets: the stylesheet, scripts and pictures of the console, under names that change with their content."""

import functools
import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from vettance.console.rendering import gzip

STATIC: Final = Path(__file__).parent / "static"
ROOT: Final = "/console/static/"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
_DIGEST_CHARS: Final = 12
_BEST: Final = 9


class Asset(NamedTuple):
    """A file as it is served, plain and compressed."""

    url: str
    content: bytes
    zipped: bytes
    content_type: str


@functools.cache
def assets() -> dict[str, Asset]:
    """Return every file by its path in the folder."""
    found = {}
    for path in sorted(STATIC.rglob("*")):
        if path.suffix not in _TYPES:
            continue
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:_DIGEST_CHARS]
        url = f"{ROOT}{path.stem}.{digest}{path.suffix}"
        found[str(path.relative_to(STATIC))] = Asset(url, content, gzip(content, _BEST), _TYPES[path.suffix])
    return found


@functools.cache
def assets_by_url() -> dict[str, Asset]:
    """Return every file by the path under which it is served."""
    return {asset.url: asset for asset in assets().values()}


def asset_url(name: str) -> str:
    """Return the path of a file, for templates. Raises `KeyError` when there is none."""
    return assets()[name].url
