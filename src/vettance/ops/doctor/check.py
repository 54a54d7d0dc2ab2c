"""What the doctor looks at, and what it says."""

import enum
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from vettance.db.connection import STORE_FILE
from vettance.settings.settings import Settings


class DoctorLevel(enum.StrEnum):
    """How bad it is. A fault keeps the service, or a part of it, from working."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


class DoctorFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check found; `mend` says what to do, where something is to be done."""

    check: str
    level: DoctorLevel
    found: str
    mend: str = ""


class DoctorContext(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at: the settings, where the server would listen, the environment, the time."""

    settings: Settings
    host: str
    port: int
    environ: Mapping[str, str]
    now_ms: int

    @property
    def store(self) -> Path:
        """The file of the embedded store."""
        return self.settings.data / STORE_FILE


Check = Callable[[DoctorContext], Iterator[DoctorFinding]]


def ok(check: str, found: str) -> DoctorFinding:
    """Say that a check found nothing to mend."""
    return DoctorFinding(check, DoctorLevel.OK, found)


def warning(check: str, found: str, mend: str) -> DoctorFinding:
    """Say what somebody should mend."""
    return DoctorFinding(check, DoctorLevel.WARNING, found, mend)


def fault(check: str, found: str, mend: str) -> DoctorFinding:
    """Say what keeps the service, or a part of it, from working."""
    return DoctorFinding(check, DoctorLevel.FAULT, found, mend)
