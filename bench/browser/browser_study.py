"""Drive the demo shop in Chromium as programs do and as people do, and count who is held.

    python bench browser_study --sessions 200 --abreast 6 --minutes 90 --out study.jsonl

All kinds take turns, session by session, until each has had its number or the minutes are over; the table
is printed at the end, with the load during each kind, and what came is kept in the file as it comes:
`--table study.jsonl` prints it again, and holds what was sent to the rules as they stand now.

Every session is a page loaded anew with a session of its own; the decision is the one the shop shows, and
REVIEW or BLOCK counts as held. The small build is used and the driver is hidden (user agent,
`navigator.webdriver`): behaviour alone decides. How people are made is in `people.py` and, by
other models, `crowd.py`; how programs are in `programs.py` and `tools.py`.
`--mouse FILE` has the typists move as recordings of real people do: a JSON list of movements, each a list of
[x, y, milliseconds].
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Page, async_playwright

from bench.browser.crowd import CROWD
from bench.browser.people import FIELDS, PLANS, Person
from bench.browser.programs import KINDS, SCRIPT_FILL
from bench.browser.tools import TOOLS, Replay, Tool
from vettance.decisions.decision import decide
from vettance.decisions.features import fraud_schema
from vettance.demo.launch import launched
from vettance.demo.shop import open_shop
from vettance.events.event import read_taken_event
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity

AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
)
WAIT_MS_MAX = 300_000  # Machines stop for a while; a session that got no decision is repeated.
ANSWERED = (
    "#decision:is([data-state=ALLOW],[data-state=REVIEW],[data-state=BLOCK]),#decision:text('No answer')"
)
BOXES = """names => Object.fromEntries(names.map(name => {
  const { x, y, width, height } = document.querySelector(name).getBoundingClientRect()
  return [name, { x, y, width, height }] }))"""
PASTE = "text => navigator.clipboard.writeText(text)"
CLIPBOARD = asyncio.Lock()  # The browser has one for all pages.
Recording = list[tuple[float, float, float]]


async def password_manager(page: Page, line: CDPSession, person: Person) -> None:
    """An extension fills both fields at once; the person clicks, or presses Enter."""
    await page.evaluate(SCRIPT_FILL, dict(zip(FIELDS, person.texts, strict=True)))
    if person.rng.random() < 0.5:
        person.click("#log-in")
    else:
        await page.focus("#password")
        person.tap("Enter")
    await person.act(line)


async def paster(page: Page, line: CDPSession, person: Person) -> None:
    """Both fields are pasted into, without typing; then a click."""
    for selector, text in zip(FIELDS, person.texts, strict=True):
        step = Person(person.rng, person.boxes)
        step.at = person.at
        step.click(selector)
        await step.act(line)
        await asyncio.sleep(person.rng.uniform(0.3, 0.8))
        async with CLIPBOARD:
            await page.bring_to_front()
            await page.evaluate(PASTE, text)
            await page.keyboard.press("Control+V", delay=person.rng.uniform(40, 100))
        person.at = step.at
    person.click("#log-in")
    await person.act(line)


async def recorded_mouse(_page: Page, line: CDPSession, person: Person) -> None:
    """A typist whose mouse moves as recordings of real people did."""
    for selector, text in zip((*FIELDS, "#log-in"), (*person.texts, ""), strict=True):
        for _ in range(person.rng.randint(1, 2)):
            person.follow(person.rng.choice(RECORDINGS), person.target(selector))
        person.now_s += person.rng.uniform(0.05, 0.25)
        person.press()
        if text:
            person.type(text)
    await person.act(line)


RECORDINGS: list[Recording] = []
WITH_PAGE = {each.__name__: each for each in (password_manager, paster, recorded_mouse)}
PLANNED = {**PLANS, **CROWD}
REPLAYED = ("any_typist_replayed", "rollover_typist_replayed", "remote_desktop_replayed")
PEOPLE = (*PLANNED, *REPLAYED, "password_manager", "paster")
PROGRAMS = (*KINDS, *TOOLS)
Row = dict[str, Any]


async def session(page: Page, line: CDPSession, shop: str, kind: str, seed: int) -> tuple[str, Any]:
    """Load the shop anew, with which a session of the service begins, act, and return what came of it."""
    await page.goto(f"{shop}/?core")
    await page.wait_for_timeout(100)
    boxes = await page.evaluate(BOXES, [*FIELDS, "#log-in"])
    rng = random.Random(f"{kind} {seed}")
    person = (Replay if kind.endswith("_replayed") else Person)(rng, boxes)
    if plan := PLANNED.get(kind.removesuffix("_replayed")):
        plan(person)
        await person.act(line)
    elif kind in WITH_PAGE:
        await WITH_PAGE[kind](page, line, person)
    else:
        await getattr(Tool(page, line, person, rng), kind)()
    await page.wait_for_selector(ANSWERED)
    decision, sent = await page.evaluate(
        "[document.getElementById('decision').dataset.state, document.getElementById('sent').textContent]"
    )
    return decision, json.loads(sent).get("sdkSignals", {}) if sent else {}


async def study(arguments: argparse.Namespace, shop: str) -> list[Row]:
    """Let all kinds take turns in a few tabs abreast; return what was decided, oldest first."""
    kinds = arguments.kinds.split(",")
    seeds = range(arguments.seed, arguments.seed + arguments.sessions)
    turns = iter([(kind, seed) for seed in seeds for kind in kinds])
    over_s = time.monotonic() + arguments.minutes * 60
    rows: list[Row] = []

    async def work(browser: Browser) -> None:
        tabs = {touch: await tab(browser, touch) for touch in (False, True)}
        for kind, seed in turns:
            decision = "none"
            while decision == "none":
                if time.monotonic() > over_s:
                    return
                decision, signals = await session(*tabs["phone" in kind], shop, kind, seed)
            rows.append(
                {
                    "kind": kind,
                    "seed": seed,
                    "decision": decision,
                    "load": os.getloadavg()[0],
                    "signals": signals,
                }
            )
            if arguments.out:
                with arguments.out.open("a") as out:
                    out.write(json.dumps(rows[-1]) + "\n")

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=arguments.chromium,
            args=["--no-sandbox", "--disable-blink-features=AutomationControlled", "--disable-dev-shm-usage"],
        )
        await asyncio.gather(*(work(browser) for _ in range(arguments.abreast)))
        await browser.close()
    return rows


async def tab(browser: Browser, touch: bool) -> tuple[Page, CDPSession]:
    """Open a page in a context of its own."""
    context = await browser.new_context(
        user_agent=AGENT, viewport={"width": 1200, "height": 760}, has_touch=touch
    )
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(WAIT_MS_MAX)
    page = await context.new_page()
    return page, await context.new_cdp_session(page)


def table(rows: list[Row]) -> str:
    """Return one line for each kind: how many were held, and at which load."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    lines = ["| side | kind | sessions | held | load |", "|---|---|---:|---:|---:|"]
    for kind, those in kinds.items():
        side = "programs" if kind in PROGRAMS else "people"
        held = sum(row["decision"] != "ALLOW" for row in those) / len(those)
        loads = sorted(row["load"] for row in those)
        load = f"{loads[len(loads) // 20]:.0f}–{loads[len(loads) * 19 // 20]:.0f}"
        lines.append(f"| {side} | {kind} | {len(those)} | {held:.1%} | {load} |")
    return "\n".join(lines)


def judged_anew(file: Path) -> list[Row]:
    """Return recorded sessions as the default rules decide them now, by their signals alone."""
    schema = fraud_schema()
    rules = load_pack("fraud")
    compiled = compile_ruleset(rules, schema)
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in rows:
        sent = {"eventName": "user.login", "eventCategory": "AUTHENTICATION", "sdkSignals": row["signals"]}
        velocity = MemoryVelocity()
        velocity.install("t", compiled.plan)
        facts = compiled.facts(read_taken_event(sent, 0))
        answers = velocity.observe("t", "1", 0, compiled.observe(facts))
        fired, _ = compiled.run(facts, answers.values)
        row["decision"] = decide(rules, 1, fired, ()).outcome.value
    return rows


def recordings(file: Path) -> list[Recording]:
    """Return the movements that are long enough to be measured and small enough for the page."""
    found = []
    for each in json.loads(file.read_text()):
        across, down = ([point[axis] for point in each] for axis in (0, 1))
        length = math.dist(each[0][:2], each[-1][:2])
        if len(each) > 5 and length > 60 and max(across) - min(across) < 600 and max(down) - min(down) < 300:
            found.append([(point[0], point[1], point[2] - each[0][2]) for point in each])
    return found


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--sessions", type=int, default=200, help="Of each kind.")
    parser.add_argument("--minutes", type=float, default=600, help="Begin no session later than this.")
    parser.add_argument("--seed", type=int, default=0, help="The first session's; each has the next.")
    parser.add_argument("--abreast", type=int, default=6)
    parser.add_argument("--kinds", default=",".join((*PEOPLE, *PROGRAMS)))
    parser.add_argument("--mouse", type=Path, help="Recordings of real people's mouse movements.")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path, help="Write what was sent and decided, one JSON object a line.")
    parser.add_argument("--table", type=Path, help="Judge what an earlier --out wrote; drive nothing.")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(judged_anew(arguments.table)))
        return
    if arguments.mouse:
        RECORDINGS.extend(recordings(arguments.mouse))
        arguments.kinds += ",recorded_mouse"
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        service = stack.enter_context(launched(Path(folder)))
        shop = stack.enter_context(open_shop(service.target))
        print(table(asyncio.run(study(arguments, shop))))
