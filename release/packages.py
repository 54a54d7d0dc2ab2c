"""Builds the packages, and checks that each holds what it should and nothing else."""

import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import NamedTuple

from release.commands import PROJECT, ReleaseFault, run

LICENCES_OF_SERVICE = ("LICENSE", "THIRD_PARTY.md")
#: What the service cannot do without, so that a folder that moves is missed here: a pattern, and what it is.
NEEDED = {
    r"vettance/console/templates/.+\.html": "pages of the console",
    r"vettance/console/static/.+\.css": "the look of the console",
    r"vettance/console/static/vendor/.+\.LICENSE": "licences of what the console shows with",
    r"vettance/web/static/swagger/LICENSE": "the licence of the API page",
    r"vettance/websdk/static/.+\.js": "the browser SDK",
    r"vettance/websdk/static/.+/NOTICE\.txt": "the licence of what the browser SDK contains",
    r"vettance/rules/packs/fraud/.+\.yaml": "the default pack",
    r"vettance/rules/packs/aml/.+\.yaml": "the AML pack",
    r"vettance/db/schema/sqlite/.+\.sql": "the schema for SQLite",
    r"vettance/db/schema/postgres/.+\.sql": "the schema for PostgreSQL",
    r"vettance/velocity/redis/.+\.lua": "the scripts for Redis",
    r"vettance/watchlists/sample/.+": "the sample watchlist",
    r"vettance/reference/words/.+\.txt": "the words of names",
    r"vettance/py\.typed": "the mark of a typed package",
}


class Package(NamedTuple):
    """A package of this repository: its folder, the name that it is imported by, and its licence files."""

    folder: Path
    module: str
    licences: tuple[str, ...]
    needed: dict[str, str]

    @property
    def version(self) -> str:
        """The version that the package's project file says."""
        return str(tomllib.loads((self.folder / "pyproject.toml").read_text("utf-8"))["project"]["version"])


SERVICE = Package(PROJECT, "vettance", LICENCES_OF_SERVICE, NEEDED)
CLIENT = Package(
    PROJECT / "clients" / "python",
    "vettance_client",
    ("LICENSE",),
    {
        r"vettance_client/py\.typed": "the mark of a typed package",
        r"vettance_client/openapi\.json": "the API",
        r"vettance_client/web/start\.js": "the script of pages",
        r"vettance_client/django/templatetags/vettance\.py": "the tags of templates",
    },
)


class Built(NamedTuple):
    """The two files of a package."""

    sdist: Path
    wheel: Path


def build(package: Package, into: Path, scratch: Path) -> Built:
    """Build the sdist from the folder and the wheel from the sdist, and check both.

    Raises `ReleaseFault` when one lacks something or holds too much.
    """
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", into, folder=package.folder)
    sdist = into / f"{package.module}-{package.version}.tar.gz"
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch, filter="data")
    unpacked = scratch / sdist.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", into, folder=unpacked)
    wheel = into / f"{package.module}-{package.version}-py3-none-any.whl"
    faults = faults_of_wheel(package, wheel)
    if faults:
        raise ReleaseFault(f"{wheel.name} is wrong:\n  " + "\n  ".join(faults))
    return Built(sdist, wheel)


def faults_of_wheel(package: Package, wheel: Path) -> list[str]:
    """Return what is missing, what is too much, and what its metadata say wrongly."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        meta = f"{package.module}-{package.version}.dist-info"
        metadata = message_from_bytes(archive.read(f"{meta}/METADATA"))
    source = package.folder / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / package.module).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    licences = {f"{meta}/licenses/{name}" for name in package.licences}
    about = {f"{meta}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    faults = [f"{name} is missing" for name in sorted((wanted | licences) - names)]
    faults += [f"{name} does not belong there" for name in sorted(names - wanted - licences - about)]
    faults += [
        f"no file is {what} ({pattern})"
        for pattern, what in package.needed.items()
        if not any(re.fullmatch(pattern, name) for name in names)
    ]
    said = (metadata["Version"], metadata["License-Expression"])
    if said != (package.version, "Apache-2.0"):
        faults.append(f"its metadata say {said}")
    return faults


def unknown_files(sdist: Path) -> list[str]:
    """Return what an sdist of the service holds that is not in version control."""
    known = set(run("git", "ls-files", "-z").split("\0"))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    return sorted(names - known - {"PKG-INFO"})
