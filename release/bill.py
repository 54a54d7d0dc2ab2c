"""Bills of materials in CycloneDX: what is installed with a package, and which files of others are in it."""

import json
import re
from pathlib import Path
from typing import Any

from release.commands import PROJECT, CleanEnvironment, run

#: A row of THIRD_PARTY.md: the file, the npm package and its version, the licence, the sum.
_ROW = re.compile(
    r"^\| `(?P<file>src/[^`]+)` \| npm `(?P<name>[^`]+)` (?P<version>[\d.]+)[^|]*\| "
    r"\[(?P<licence>[^\]]+)\]\([^)]+\) \| `(?P<sum>[0-9a-f]{64})` \|$"
)
_CHECK = """
import sys
from pathlib import Path
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(Path(sys.argv[1]).read_text("utf-8"))
sys.exit(f"not valid CycloneDX: {fault}" if fault else 0)
"""
_FINGERPRINT = re.compile(r"FingerprintJS (?P<version>\d+\.\d+\.\d+)")


def contained() -> list[dict[str, Any]]:
    """Return a component for each package of others whose files are in the service's own wheel."""
    found: dict[str, dict[str, Any]] = {}
    for line in (PROJECT / "THIRD_PARTY.md").read_text("utf-8").splitlines():
        if row := _ROW.match(line):
            one = found.setdefault(row["name"], _component(row["name"], row["version"], row["licence"]))
            one["properties"].append({"name": "vettance:file", "value": f"{row['file']} sha256:{row['sum']}"})
    notice = (PROJECT / "sdk" / "web" / "NOTICE.txt").read_text("utf-8")
    version = _FINGERPRINT.search(notice)
    if version:
        name = "@fingerprintjs/fingerprintjs"
        found[name] = _component(name, version["version"], "MIT")
    return list(found.values())


def _component(name: str, version: str, licence: str) -> dict[str, Any]:
    reference = f"pkg:npm/{name.replace('@', '%40')}@{version}"
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": reference,
        "licenses": [{"license": {"id": licence}}],
        "properties": [],
    }


def write_bill(
    tools: CleanEnvironment,
    installed: CleanEnvironment,
    project: Path,
    into: Path,
    more: list[dict[str, Any]],
) -> int:
    """Write the bill of an environment and check it against the schema; returns the number of components."""
    run(
        tools.program("cyclonedx-py"), "environment", "--pyproject", project / "pyproject.toml",
        "--mc-type", "application", "--spec-version", "1.6", "--output-reproducible",
        "--output-file", into, installed.python,
    )  # fmt: skip
    bill = json.loads(into.read_text("utf-8"))
    bill["components"] += more
    root = bill["metadata"]["component"]["bom-ref"]
    for one in bill["dependencies"]:
        if one["ref"] == root:
            one["dependsOn"] = sorted({*one.get("dependsOn", ()), *(part["bom-ref"] for part in more)})
    into.write_text(json.dumps(bill, indent=2, ensure_ascii=False) + "\n", "utf-8")
    run(tools.python, "-c", _CHECK, into)
    return len(bill["components"])
