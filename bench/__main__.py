"""Runs a benchmark by its name: `python bench NAME [OPTIONS]`; without a name, lists them all."""

import ast
import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def scripts() -> dict[str, Path]:
    """Return every script by its name: the modules that have a `main`."""
    files = {path.stem: path for path in sorted(FOLDER.glob("*/*.py"))}
    return {name: path for name, path in files.items() if "\ndef main(" in path.read_text("utf-8")}


def main() -> None:
    """Run the script that the first argument names; the others are its own."""
    known = scripts()
    name = sys.argv[1].replace("-", "_") if len(sys.argv) > 1 else ""
    if name not in known:
        for each, path in known.items():
            manual = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
            print(f"{each:<22}{path.parent.name:<12}{manual.splitlines()[0]}")
        raise SystemExit(f"\nthere is no benchmark {name!r}" if name.strip("_help") else 0)
    sys.path[0] = str(FOLDER.parent)
    sys.path.insert(1, str(FOLDER.parent / "clients" / "python" / "src"))
    sys.argv[:2] = [f"bench {name}"]
    raise SystemExit(importlib.import_module(f"bench.{known[name].parent.name}.{name}").main())


if __name__ == "__main__":
    main()
