"""The site of the documentation: every page is reached, light, accessible, and works without a network."""

import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

import pytest

from tests.docs.shell import PROJECT
from website.page_sources import BrokenLink, fit_links, page_table

pytestmark = pytest.mark.slow

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']"
#: The rules among them that look at colours, which are all that another theme changes.
COLOUR_RULES = "{type: 'rule', values: ['color-contrast', 'link-in-text-block']}"
CHECK = """axe.run(document, {runOnly: %s}).then((found) => found.violations.map(
  (one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`))"""
#: Compressed bytes of a page with its styles and scripts; pictures are loaded when they come into view.
WEIGHT_MAX = 200_000
#: One of each kind: prose, code, wide tables, generated reference, pictures, the search itself.
LOOKED_AT = (
    *("index", "tutorial", "rules", "default-pack", "console", "comparison", "search", "glossary"),
    *("reference/api-decisions", "reference/commands", "reference/fields", "coming-from/screening"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "html"
    done = subprocess.run(
        [sys.executable, "-m", "website", "--out", str(out)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


def loads(page: Path) -> list[str]:
    """The addresses of the styles, scripts and pictures of a page."""
    text = page.read_text("utf-8")
    return re.findall(r'<(?:script|img)[^>]* src="([^"]+)"', text) + re.findall(
        r'<link[^>]* rel="(?:stylesheet|icon|preload)"[^>]* href="([^"]+)"', text
    )


@pytest.mark.timeout(900)
def test_links_lead_from_the_first_page_to_every_page(site: Path) -> None:
    reached, left = set(), [site / "index.html"]
    while left:
        page = left.pop().resolve()
        if page in reached:
            continue
        reached.add(page)
        for target in re.findall(r'<a[^>]* href="([^"]+)"', page.read_text("utf-8")):
            if not target.startswith(("http:", "https:", "mailto:", "#")):
                led = (page.parent / urldefrag(target).url).resolve()
                assert led.exists(), f"{page.name} links to {target}"
                if led.suffix == ".html":
                    left.append(led)
    pages = {page.resolve() for page in site.rglob("*.html")}
    assert pages - reached <= {(site / "genindex.html").resolve(), (site / "search.html").resolve()}


def test_no_page_loads_anything_from_elsewhere_and_all_are_light(site: Path) -> None:
    weights: dict[str, int] = {}
    for page in site.rglob("*.html"):
        asked = loads(page)
        assert not [one for one in asked if one.startswith(("http:", "https:", "//"))], page.name
        files = [page, *((page.parent / one.partition("?")[0]) for one in asked if not one.endswith(".png"))]
        weights[page.name] = sum(len(gzip.compress(file.read_bytes())) for file in files)
        assert all(
            'loading="lazy"' in tag for tag in re.findall(r"<img[^>]+png[^>]*>", page.read_text("utf-8"))
        )
    assert max(weights.values()) <= WEIGHT_MAX, max(weights.items(), key=lambda one: one[1])


def test_search_finds_a_setting_without_a_server(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.context.set_offline(True)
    page.goto(f"{(site / 'index.html').as_uri()}")
    page.fill("input[name=q]", "VETTANCE_PROXIES")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a", timeout=60_000)
    assert "Settings" in page.inner_text("#search-results")
    page.close()


@pytest.mark.timeout(900)
def test_axe_finds_nothing_on_any_kind_of_page(site: Path, browser: Any) -> None:
    context = browser.new_context(color_scheme="light", reduced_motion="reduce")
    page = context.new_page()
    for name in LOOKED_AT:
        page.emulate_media(color_scheme="light")
        page.goto((site / f"{name}.html").as_uri())
        page.evaluate(AXE)
        for width in (380, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(CHECK % RULES) == [], (name, width)
            wide = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, (name, width)
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(CHECK % COLOUR_RULES) == [], (name, "dark")
    context.close()


def test_links_are_made_to_fit_the_site_and_a_broken_one_is_named() -> None:
    table = page_table()
    text = "[rules](rules.md#words) [code](../src/vettance/cli.py) [log](../CHANGELOG.md) [out](https://example.com)"
    assert fit_links(text, "docs/webhooks.md", "webhooks.md", table) == (
        "[rules](rules.md#words) code [log](changelog.md) [out](https://example.com)"
    )
    with pytest.raises(BrokenLink, match=r"docs/webhooks\.md links to gone\.md"):
        fit_links("[x](gone.md)", "docs/webhooks.md", "webhooks.md", table)
