"""The doctor tells of what the user that runs it may not read or write, with the mend."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import run_cli
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, DoctorLevel
from vettance.ops.doctor.doctor import examine
from vettance.ops.doctor.machine_checks import check_data_folder
from vettance.settings.settings import read_settings


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder with everything in it; folders of pytest are root's only."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "data"
        run_cli(folder, "migrate", "--json")
        Path(made).chmod(0o755)
        (folder / "secret.key").write_text("ab" * 32)
        for name in ("watchlists/un_sc", "memory"):
            (folder / name).mkdir(mode=0o700, parents=True)
        examine(patient(folder))  # What Python loads late may lie where only root may look.
        (folder / "vettance.db-wal").touch()
        yield folder


def patient(data: Path) -> DoctorContext:
    return DoctorContext(
        settings=read_settings({}, data=str(data)),
        host="127.0.0.1",
        port=0,
        environ={},
        now_ms=1_800_000_000_000,
    )


def faults(data: Path) -> list[DoctorFinding]:
    """Examine as somebody else than root, whom rights do not bind."""
    root = os.geteuid() == 0
    if root:
        for path in (data, *data.rglob("*")):
            os.chown(path, 65534, -1)
        os.seteuid(65534)
    try:
        return [one for one in examine(patient(data)) if one.level is DoctorLevel.FAULT]
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("shut", "mode"),
    [
        ("", 0o500),
        ("", 0o000),
        ("vettance.db", 0o400),
        ("vettance.db-wal", 0o400),
        ("watchlists", 0o500),
        ("watchlists/un_sc", 0o000),
        ("memory", 0o000),
    ],
)
def test_what_cannot_be_written_is_one_fault_with_its_mend(data: Path, shut: str, mode: int) -> None:
    (data / shut).chmod(mode)
    [told] = faults(data)
    assert f"{data / shut} cannot be written" in told.found
    assert told.mend == f"`chmod -R u+rwX {data}`"


def test_a_secret_that_cannot_be_read_is_one_fault_with_its_mend(data: Path) -> None:
    (data / "secret.key").chmod(0o000)
    [told] = faults(data)
    assert f"{data / 'secret.key'} cannot be read" in told.found
    assert told.mend == f"`chmod -R u+rwX {data}`"
    (data / "secret.key").chmod(0o400)
    assert faults(data) == []


def test_what_is_not_ours_may_be_shut(data: Path) -> None:
    (data / "lost+found").mkdir(mode=0o000)
    assert faults(data) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_file_system_for_reading_only_is_told_as_such(data: Path) -> None:
    done = subprocess.run(["mount", "--bind", data, data], capture_output=True, timeout=30, check=False)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", data], timeout=30, check=True)
        told = run_cli(data, "doctor", ok=False)
    finally:
        subprocess.run(["umount", data], timeout=30, check=True)
    assert told.returncode == 1
    assert told.stdout.count("FAULT") == 1
    assert f"{data} cannot be written" in told.stdout
    assert "mounted read-only" in told.stdout


def test_a_data_folder_that_is_a_file_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    [told] = check_data_folder(patient(tmp_path / "data"))
    assert told.level is DoctorLevel.FAULT
    assert "is no folder" in told.found


def test_a_store_that_is_no_store_is_told_with_every_mend_that_there_may_be(data: Path) -> None:
    shutil.rmtree(data / "watchlists")
    (data / "vettance.db").write_bytes(b"no store at all " * 1000)
    [told] = faults(data)
    for word in ("another process", "disk", "vettance restore"):
        assert word in told.mend
