"""Takes pictures of the console, filled by the demo, in both themes.

Those that the documentation shows go into docs/pictures; with `--every FOLDER` each page is taken at 1440 and
380 pixels instead, into that folder, for looking at all of them side by side.

    python bench screenshots [--data FOLDER] [--every FOLDER] [--customers 400]
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from vettance.console.page_table import PAGES, PageTable
from vettance.demo.launch import RunningService, serving

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "docs" / "pictures"
THEMES: Final = ("light", "dark")
#: A picture of the documentation weighs no more.
BYTES_MAX: Final = 150_000
_SIZE: Final = (1120, 660)
_WIDTHS: Final = (1440, 380)
_PASSWORD: Final = "a long password for pictures"
#: Tried one after the other for a picture that is too heavy as PNG.
_QUALITIES: Final = (85, 75, 65, 50)
#: The pages that the documentation shows.
DOCUMENTED: Final = (
    "overview",
    "queue",
    "decision",
    "customer",
    "aml-case",
    "reports",
    "settings",
)

#: Pages that open nothing to look at: they end or begin something elsewhere.
_LEFT_OUT: Final = ("/console/sign-in/provider", "/console/sign-in/return")


def main() -> None:
    """Fill a service by the demo, unless `--data` names one that is filled, and take the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="what `vettance demo --exit` left; made anew when left out")
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="take every page at both widths instead")
    parser.add_argument("--customers", type=int, default=400, help="how many customers the demo invents")
    given = parser.parse_args()
    with contextlib.ExitStack() as held:
        folder = given.data
        if folder is None:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory())) / "demo"
        made = fill(folder, given.customers)
        service = held.enter_context(serving(folder, made["tenantId"], made["apiKey"]))
        for line in take(service, made["link"], given.every):
            print(line)


def fill(folder: Path, customers: int) -> dict[str, Any]:
    """Run the demo into a folder, or make a new link to one that it has filled; returns how to get in."""
    kept = folder / "pictures.json"
    if kept.exists():
        made: dict[str, Any] = json.loads(kept.read_text())
        return made | {"link": _vettance("user", "link", "you@example.com", "--data", str(folder))["link"]}
    arguments = ("demo", "--exit", "--customers", str(customers), "--folder", str(folder))
    made = _vettance(*arguments)
    kept.write_text(json.dumps({name: made[name] for name in ("tenantId", "apiKey")}))
    return made


def take(service: RunningService, link: str, every: Path | None) -> Iterator[str]:
    """Sign in and take the pictures; yields a line for each."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto(f"{service.target.base_url}{link}")
        for field in page.locator("input[type=password]").all():
            field.fill(_PASSWORD)
        page.click("button.primary")
        page.wait_for_url("**/console/")
        state = page.context.storage_state()
        shown = pages_of(service)
        if every is not None:
            taken = set(shown.values())
            shown |= {name: path for name, path in more_pages().items() if path and path not in taken}
            shown = linked_pages(page, shown, service.target.base_url)
            every.mkdir(parents=True, exist_ok=True)
        for theme in THEMES:
            context = browser.new_context(
                storage_state=state,
                color_scheme=theme,
                viewport={"width": _SIZE[0], "height": _SIZE[1]},
                reduced_motion="reduce",
                locale="en-GB",
            )
            signed_in = context.new_page()
            stranger = browser.new_context(
                color_scheme=theme, reduced_motion="reduce", locale="en-GB"
            ).new_page()
            for name, path in shown.items():
                tab = stranger if path == "sign-in" else signed_in
                tab.goto(f"{service.target.base_url}/console/{path}")
                tab.wait_for_timeout(300)
                if name in DOCUMENTED and every is None:
                    PICTURES.mkdir(parents=True, exist_ok=True)
                    file = _shoot(tab, PICTURES, f"{name}-{theme}")
                    yield f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes"
                for width in _WIDTHS if every is not None else ():
                    tab.set_viewport_size({"width": width, "height": 900})
                    assert every is not None
                    tab.screenshot(path=every / f"{name}-{width}-{theme}.png", full_page=True)
                tab.set_viewport_size({"width": _SIZE[0], "height": _SIZE[1]})
            context.close()
        browser.close()


def pages_of(service: RunningService) -> dict[str, str]:
    """Return the pages by the names of their pictures; those of one thing show the most telling one."""
    denied = _ask(service, "/decisions?decision=deny&sortBy=riskScore&limit=50")["data"]
    payment = next((one for one in denied if len(one["reasonCodes"]) > 1), denied[0])
    held = _ask(service, "/reviews?state=open&sortBy=priority&limit=1")["data"]
    cases = _ask(service, "/aml/cases?limit=50")["data"]
    case = max(cases, key=lambda one: one.get("alertCount", 0), default=None)
    shown = {
        "overview": "?span=7d",
        "queue": "queue",
        "decisions": "decisions",
        "decision": f"decisions/{held[0]['decisionId'] if held else payment['id']}",
        "denied": f"decisions/{payment['id']}",
        "lists": "lists",
        "search": "search?q=refund",
        "alerts": "aml/alerts",
        "aml-cases": "aml/cases",
        "screen": "aml/screen",
        "reports": "reports?span=30d",
        "webhooks": "webhooks",
        "settings": "settings",
        "users": "settings/users",
        "audit": "audit",
        "profile": "profile",
    }
    customer = (
        (payment.get("customer") or {}).get("externalId")
        if isinstance(payment.get("customer"), dict)
        else None
    )
    if customer is None:
        record = _ask(service, f"/decisions/{payment['id']}")
        customer = record["linkedEntities"]["customer"]["id"]
    shown["customer"] = f"entities/customer/{quote(customer, safe='')}"
    if case is not None:
        shown["aml-case"] = f"aml/cases/{case['id']}"
    return shown


def more_pages() -> dict[str, str]:
    """Return the other pages of the table that need no name of a thing."""
    return {
        page.path.removeprefix("/console/").replace("/", "-"): page.path.removeprefix("/console/")
        for page in PAGES
        if page.method == "GET" and "{" not in page.path and page.path not in _LEFT_OUT
    }


def linked_pages(tab: Any, shown: dict[str, str], base_url: str) -> dict[str, str]:
    """Return a page of each kind that the pages shown lead to and that none of them is."""
    table, found = PageTable(), dict(shown)
    known = {path for path in (_row(table, path) for path in shown.values()) if path}
    waiting = list(shown.values())
    while waiting:
        tab.goto(f"{base_url}/console/{waiting.pop(0)}")
        links = tab.eval_on_selector_all(
            "main a[href^='/console/']", "all => all.map(a => a.getAttribute('href'))"
        )
        for link in links:
            path = link.removeprefix("/console/").partition("#")[0]
            row = _row(table, path)
            if row and row not in known and row not in _LEFT_OUT:
                known.add(row)
                found[re.sub(r"[{}]", "", row.removeprefix("/console/")).replace("/", "-")] = path
                waiting.append(path)
    return found


def _row(table: PageTable, path: str) -> str:
    """Return the row of the table that a path below /console/ belongs to."""
    page = table.find("GET", f"/console/{path.partition('?')[0]}".encode())
    return page[0].path if page is not None else ""


def _shoot(tab: Any, folder: Path, name: str) -> Path:
    """Take the visible part of a page, as PNG or, where that is too heavy, as JPEG."""
    for old in folder.glob(f"{name}.*"):
        old.unlink()
    file = folder / f"{name}.png"
    if len(tab.screenshot(path=file)) <= BYTES_MAX:
        return file
    file.unlink()
    file = folder / f"{name}.jpg"
    for quality in _QUALITIES:
        if len(tab.screenshot(path=file, type="jpeg", quality=quality)) <= BYTES_MAX:
            break
    return file


def _ask(service: RunningService, path: str) -> Any:
    headers = {"x-api-key": service.target.api_key}
    asked = urllib.request.Request(f"{service.target.base_url}/api/v1{path}", headers=headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def _vettance(*arguments: str) -> dict[str, Any]:
    """Run a command of ours, and return what it answers."""
    done = subprocess.run(
        [sys.executable, "-m", "vettance.cli", *arguments, "--json"],
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
