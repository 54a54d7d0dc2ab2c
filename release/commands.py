"""Programs that a release runs, each with a time limit."""

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
COMMAND_S_MAX = 600.0


class ReleaseFault(Exception):
    """What keeps a release from being made, as a sentence."""


def run(*command: str | Path, folder: Path = PROJECT) -> str:
    """Run a program as a user without settings of the service would, and return what it prints.

    Raises `ReleaseFault` with the end of its messages when it fails or takes too long.
    """
    done = run_through(*command, folder=folder)
    if done.returncode != 0:
        end = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise ReleaseFault(f"{Path(command[0]).name} {' '.join(map(str, command[1:4]))} … failed:\n{end}")
    return done.stdout


def run_through(*command: str | Path, folder: Path = PROJECT) -> subprocess.CompletedProcess[str]:
    """Run a program and return how it ended, whatever its status is."""
    try:
        return subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ReleaseFault(f"{command[0]} took longer than {COMMAND_S_MAX:g} s") from None


def clean_environment() -> dict[str, str]:
    """Return the variables of this process without those that lead Python or the service to the source."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("VETTANCE_", "PYTHON", "VIRTUAL_ENV"))
    }


class CleanEnvironment:
    """A virtual environment that holds what is installed here and nothing else, pip itself included."""

    def __init__(self, folder: Path) -> None:
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder)
        self.python = folder / "bin" / "python"

    def install(self, *arguments: str | Path) -> None:
        """Install by the pip that runs the release; what is imported is compiled then, which is little."""
        run(sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet",
            "--no-compile", "--disable-pip-version-check", *arguments)  # fmt: skip

    def program(self, name: str) -> Path:
        """Return where a program of an installed package is."""
        return self.python.with_name(name)

    @property
    def packages(self) -> Path:
        """The folder into which packages are installed."""
        return Path(run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
