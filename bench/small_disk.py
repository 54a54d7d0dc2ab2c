"""A small file system of its own for a store, so that a disk can be filled up."""

import contextlib
import os
import subprocess
from pathlib import Path


class SmallDisk:
    """A folder on a file system of `size` bytes, where we may mount one; else it is a folder like others."""

    def __init__(self, folder: Path, size: int, mode: int = 0o1777) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True, exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode={mode:o}", "vettance-faults", str(folder)]
        self.mounted = (
            os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )

    def fill(self) -> None:
        """Leave no room."""
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            for piece in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * piece)

    def free(self) -> None:
        """Make room again."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=False)
