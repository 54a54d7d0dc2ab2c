"""Known vulnerabilities of what the locks name, by pip-audit, and what could not be checked."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from release.commands import run_through


class Audit(NamedTuple):
    """What is known of distributions: those that were looked up, those that were not, and why."""

    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    reasons: tuple[str, ...]
    found: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What may be said of it, and no more."""
        if self.found:
            return f"{len(self.found)} known vulnerabilities: {'; '.join(self.found)}"
        if not self.checked:
            reason = self.reasons[0] if self.reasons else "no reason given"
            return f"NOT CHECKED for known vulnerabilities ({reason})"
        left = f"; NOT CHECKED: {', '.join(self.unchecked)}" if self.unchecked else ""
        return f"no known vulnerability in {len(self.checked)} distributions{left}"


def audit(program: Path, locks: list[Path]) -> Audit:
    """Ask the Python Package Index about every pin; what it does not answer is unchecked, never clean."""
    checked: dict[str, None] = {}
    unchecked: dict[str, str] = {}
    found: dict[str, None] = {}
    for lock in locks:
        done = run_through(
            program, "--requirement", lock, "--require-hashes", "--disable-pip", "--progress-spinner", "off",
            "--format", "json",
        )  # fmt: skip
        try:
            one = read_audit(json.loads(done.stdout))
        except ValueError:
            end = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            one = Audit((), (lock.name,), (f"pip-audit could not look up {lock.name}: {end[:200]}",), ())
        checked |= dict.fromkeys(one.checked)
        unchecked |= dict(zip(one.unchecked, one.reasons, strict=True))
        found |= dict.fromkeys(one.found)
    return Audit(tuple(checked), tuple(unchecked), tuple(unchecked.values()), tuple(found))


def read_audit(report: Any) -> Audit:
    """Read the JSON that pip-audit prints. Raises `ValueError` when it is something else."""
    if not isinstance(report, dict) or "dependencies" not in report:
        raise ValueError("not a report of pip-audit")
    rows = report["dependencies"]
    skipped = [row for row in rows if "skip_reason" in row]
    looked_up = [row for row in rows if "skip_reason" not in row]
    return Audit(
        tuple(f"{row['name']} {row['version']}" for row in looked_up),
        tuple(row["name"] for row in skipped),
        tuple(row["skip_reason"] for row in skipped),
        tuple(f"{row['name']} {row['version']}: {one['id']}" for row in looked_up for one in row["vulns"]),
    )
