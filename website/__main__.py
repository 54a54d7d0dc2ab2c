"""Build the site: `make site` writes it to `site/`; open `site/index.html`.

Pages are staged first: those of `docs/`, the root and the clients, with links that fit the site, and the
reference, made from the tables of the code. Then Sphinx makes HTML of them. A warning of Sphinx is an error,
so no link leads nowhere.
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from website.page_sources import PROJECT, stage_pages
from website.reference_pages import write_reference


def main() -> int:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m website", description=__doc__)
    parser.add_argument("--out", type=Path, default=PROJECT / "site", help="the folder to write to")
    parser.add_argument("--nitpick", action="store_true", help="show what Sphinx does, page by page")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vettance-site-") as place:
        staged = Path(place) / "pages"
        pages = stage_pages(staged)
        pages += write_reference(staged / "reference")
        print(f"{pages} pages staged; building …", flush=True)
        code = build(staged, Path(place) / "html", quiet=not arguments.nitpick)
        if code:
            return code
        if arguments.out.exists():
            shutil.rmtree(arguments.out)
        shutil.move(Path(place) / "html", arguments.out)
    print(f"The site is in {arguments.out}: open {arguments.out / 'index.html'} in a browser.")
    return 0


def build(staged: Path, out: Path, *, quiet: bool) -> int:
    """Make HTML of staged pages; returns the exit code of Sphinx."""
    from sphinx.cmd.build import main as sphinx

    configuration = Path(__file__).parent
    flags = ["-q"] if quiet else []
    code: int = sphinx(
        [*flags, "-W", "--keep-going", "-E", "-b", "html", "-c", str(configuration), str(staged), str(out)]
    )
    finish_pages(out)
    for leftover in (".buildinfo", ".doctrees", "objects.inv"):
        path = out / leftover
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return code


def finish_pages(out: Path) -> None:
    """Add what the theme leaves out: levels of headings, pictures that load when they come into view."""
    for page in out.rglob("*.html"):
        text = page.read_text("utf-8")
        text = text.replace(
            '<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'
        )
        text = re.sub(r'<img (?![^>]*loading=)(?=[^>]*\.png")', '<img loading="lazy" ', text)
        text = text.replace("<pre>", '<pre tabindex="0">')  # What scrolls is reached by keyboard.
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
