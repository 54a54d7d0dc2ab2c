"""The lock files, read."""

import re
from pathlib import Path

from packaging.markers import Marker

_PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>[^\\]+?))?\s*\\?$"
)


def pins_of(lock: Path) -> dict[str, str]:
    """Return name and version of every distribution that a lock has for this machine and this Python."""
    found = (_PIN.match(line) for line in lock.read_text("utf-8").splitlines())
    return {
        re.sub(r"[-_.]+", "-", pin["name"]).lower(): pin["version"]
        for pin in found
        if pin and (pin["marker"] is None or Marker(pin["marker"]).evaluate())
    }
