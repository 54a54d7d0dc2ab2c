"""Makes a release: `python -m release` (`make dist`). Publishes nothing."""

import argparse
import hashlib
import importlib.metadata
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from release.bill import contained, write_bill
from release.commands import PROJECT, CleanEnvironment, ReleaseFault
from release.licences import refusals
from release.locks import pins_of
from release.packages import CLIENT, SERVICE, Package, build, unknown_files
from release.trial import first_decision
from release.vulnerabilities import audit

LOCK_OF_SERVICE = PROJECT / "requirements.lock"
LOCK_OF_CLIENT = PROJECT / "clients" / "python" / "requirements.lock"
LOCK_OF_TOOLS = PROJECT / "requirements-release.lock"


def main() -> None:
    """Build, try, describe and check; ends with status 1 and a sentence when something is wrong."""
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument("--into", type=Path, default=PROJECT / "dist", help="where the packages are put")
    parser.add_argument("--dirty", action="store_true", help="take files that are not in version control")
    parser.add_argument("--require-audit", action="store_true", help="fail when anything is left unchecked")
    chosen = parser.parse_args()
    into = chosen.into.resolve()
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory(prefix="vettance-release-") as scratch:
            record = make(into, Path(scratch), dirty=chosen.dirty)
    except ReleaseFault as fault:
        sys.exit(f"make dist: {fault}")
    (into / "checks.json").write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    _write_sums(into)
    print(f"\nIn {into}:")
    for path in sorted(into.iterdir()):
        print(f"  {path.name:<48}{path.stat().st_size:>10,} bytes")
    unsafe = record["vulnerabilities"]
    if unsafe["found"] or (chosen.require_audit and unsafe["unchecked"]):
        sys.exit(f"make dist: {unsafe['says']}")


def make(into: Path, scratch: Path, *, dirty: bool) -> dict[str, Any]:
    """Run every step, and return what was seen. Raises `ReleaseFault` at the first that fails."""
    print("Building, the wheels from the sdists …")
    service = build(SERVICE, into, scratch)
    build(CLIENT, into, scratch)
    unknown = [] if dirty else unknown_files(service.sdist)
    if unknown:
        raise ReleaseFault(f"the sdist holds files that are not in version control: {', '.join(unknown)}")
    print("  each wheel holds every file of its source, its licences, and nothing else")

    print("Installing the wheels with their locks into clean environments …")
    running = _installed(SERVICE, LOCK_OF_SERVICE, into, scratch)
    asking = _installed(CLIENT, LOCK_OF_CLIENT, into, scratch)
    seen = first_decision(running, asking, scratch)
    print(f"  the demo decided {seen['demoDecisions']} events, and the client got: {seen['firstDecision']}")

    licences = _check_licences({"service": running, "client": asking})
    print(f"  {licences} distributions, all under licences of the allow list")

    print("Writing bills of materials …")
    tools = CleanEnvironment(scratch / "tools")
    tools.install("--require-hashes", "-r", LOCK_OF_TOOLS)
    parts = {}
    for package, where, more in ((SERVICE, running, contained()), (CLIENT, asking, [])):
        bill = into / f"{package.module}-{package.version}.cdx.json"
        parts[package.module] = write_bill(tools, where, package.folder, bill, more)
        print(f"  {bill.name}: {parts[package.module]} components, valid CycloneDX 1.6")

    print("Asking for known vulnerabilities …")
    known = audit(tools.program("pip-audit"), [LOCK_OF_SERVICE, LOCK_OF_CLIENT])
    print(f"  {known.sentence}")
    return {
        "version": SERVICE.version,
        "trial": seen,
        "licensesAllowed": licences,
        "components": parts,
        "vulnerabilities": {
            "says": known.sentence,
            "checked": list(known.checked),
            "unchecked": dict(zip(known.unchecked, known.reasons, strict=True)),
            "found": list(known.found),
        },
    }


def _installed(package: Package, lock: Path, wheels: Path, scratch: Path) -> CleanEnvironment:
    """Install a wheel and exactly what its lock names, into an environment of its own."""
    environment = CleanEnvironment(scratch / f"installed-{package.module}")
    environment.install("--require-hashes", "-r", lock)
    environment.install(
        "--no-deps", "--no-index", "--find-links", wheels, f"{package.module}=={package.version}"
    )
    found = {
        each.metadata["Name"].lower().replace("_", "-").replace(".", "-")
        for each in importlib.metadata.distributions(path=[str(environment.packages)])
    }
    wanted = {*pins_of(lock), package.module.replace("_", "-")}
    if found != wanted:
        raise ReleaseFault(f"{lock.name} and what is installed differ in {sorted(found ^ wanted)}")
    return environment


def _check_licences(environments: dict[str, CleanEnvironment]) -> int:
    """Hold what is installed against the allow list; returns how many distributions that are."""
    names = set()
    for environment in environments.values():
        installed = list(importlib.metadata.distributions(path=[str(environment.packages)]))
        if refused := refusals(installed):
            raise ReleaseFault("licences that are not allowed:\n  " + "\n  ".join(refused))
        names |= {each.metadata["Name"] for each in installed}
    return len(names)


def _write_sums(folder: Path) -> None:
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
