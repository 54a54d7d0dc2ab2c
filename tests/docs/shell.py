"""The commands of a page, pasted block by block into one shell."""

import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]


class Block(NamedTuple):
    """Commands of a page, and what the page says they print, or None where it says nothing."""

    commands: str
    printed: str | None


def blocks_of(page: str) -> list[Block]:
    """The blocks marked `sh`, each with the block marked `text` that follows it at once."""
    found = re.findall(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", page, re.DOTALL | re.MULTILINE)
    return [Block(commands, printed or None) for commands, printed in found]


def prints(block: Block, output: str) -> bool:
    """Whether a block printed what its page says; `…` is anything."""
    pattern = ".*".join(re.escape(part) for part in (block.printed or "…").strip().split("…"))
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


class Shell:
    """A shell in a folder that looks like a clone of the project, with what it starts in the background.

    The port of the pages is replaced by a free one, and set-up that was made once is not made again.
    """

    END = "end of the block"

    def __init__(self, folder: Path) -> None:
        (folder / ".venv").mkdir()
        for name in ("Makefile", "pyproject.toml", "requirements-dev.lock", ".venv/bin"):
            (folder / name).symlink_to(PROJECT / name)
        (folder / ".venv" / ".ready").touch()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("VETTANCE_", "MAKE"))
            },
        )

    def paste(self, commands: str, *, wait_s: float = 60.0) -> str:
        """Run commands as if they were typed; returns what they print."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        commands = commands.replace("8080", self.port).replace(
            "vettance serve", f"vettance serve --port {self.port}"
        )
        late = threading.Timer(wait_s, self.close)
        late.start()
        try:
            self.process.stdin.write(f"{commands}\necho; echo '{self.END}'\n")
            self.process.stdin.flush()
            lines = []
            for line in self.process.stdout:
                if line.strip() == self.END:
                    break
                lines.append(line)
            else:
                raise AssertionError(
                    f"the shell ended, or it took longer than {wait_s:g} s:\n{''.join(lines)}"
                )
        finally:
            late.cancel()
        return "".join(lines).strip()

    def close(self) -> None:
        """End the shell and whatever it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
