"""Drive the demo shop in Chromium as programs do and as people do, and count who is held.

    python bench/browser_study.py --sessions 200 --abreast 4

Every session is a page of its own with a session of its own; the decision is the one the shop shows. The
small build is used and the driver is hidden (user agent, `navigator.webdriver`): behaviour alone decides.
People's side is made up here: intervals between keys are log-normal around a person's own pace, the mouse
follows minimum-jerk strokes (Flash and Hogan 1985) with curvature, tremor, overshoot and pauses.
"""

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import math
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from vettance.demo.launch import launched
from vettance.demo.shop import open_shop

AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
)
DECISION_S_MAX = 20.0
WORDS = ("anna", "mertens", "kowalski", "shop", "blue", "harbour", "lena", "paper", "stone", "quick")
Point = tuple[float, float]


async def until(moment_s: float) -> None:
    await asyncio.sleep(max(0.0, moment_s - time.monotonic()))


async def middle_of(page: Page, selector: str, rng: random.Random | None = None) -> Point:
    box = await page.locator(selector).bounding_box()
    assert box is not None
    across, down = (0.5, 0.5) if rng is None else (rng.uniform(0.2, 0.8), rng.uniform(0.25, 0.75))
    return box["x"] + box["width"] * across, box["y"] + box["height"] * down


class Driver:
    """One session: a page, its own chance, and what a person or a program does with it."""

    def __init__(self, page: Page, rng: random.Random) -> None:
        self.page = page
        self.rng = rng
        self.at: Point = (rng.uniform(50, 900), rng.uniform(50, 500))
        self.email = f"{rng.choice(WORDS)}.{rng.choice(WORDS)}{rng.randint(1, 99)}@example.com"
        self.secret = f"{rng.choice(WORDS)}-{rng.choice(WORDS)}{rng.randint(10, 99)}"
        self.pace_s = math.exp(rng.gauss(math.log(0.16), 0.25))
        self.spread = rng.uniform(0.32, 0.6)

    # What people do.

    async def human_stroke(self, to: Point) -> None:
        """Move as a hand does: bell-shaped speed, a bend, tremor, and at times a correction at the end."""
        rng, start = self.rng, self.at
        way = math.dist(start, to)
        if way < 3:
            return
        aims = [to]
        if rng.random() < 0.6:
            over = rng.uniform(-0.12, 0.12)
            past = [to[axis] + (to[axis] - start[axis]) * over + rng.gauss(0, 6) for axis in (0, 1)]
            aims = [(past[0], past[1]), to]
        moment_s = time.monotonic()
        for aim in aims:
            begin, length = self.at, math.dist(self.at, aim)
            took_s = 0.12 + 0.11 * math.log2(1 + length / 20) * rng.uniform(0.8, 1.3)
            bend = rng.gauss(0, 0.11) + math.copysign(0.05, rng.random() - 0.5)
            began_s, share = moment_s, 0.0
            while share < 1:
                moment_s += rng.choice((0.007, 0.008, 0.008, 0.009, 0.016))
                share = min(1.0, (moment_s - began_s) / took_s)
                done = 10 * share**3 - 15 * share**4 + 6 * share**5
                side = math.sin(math.pi * done) * bend * length
                across, down = aim[0] - begin[0], aim[1] - begin[1]
                norm = max(1.0, math.hypot(across, down))
                x = begin[0] + across * done - down / norm * side + rng.gauss(0, 0.6)
                y = begin[1] + down * done + across / norm * side + rng.gauss(0, 0.6)
                await until(moment_s)
                await self.page.mouse.move(x, y)
                self.at = (x, y)
            moment_s += rng.uniform(0.02, 0.1)

    async def human_click(self, selector: str) -> None:
        await self.human_stroke(await middle_of(self.page, selector, self.rng))
        await asyncio.sleep(self.rng.uniform(0.05, 0.25))
        await self.page.mouse.down()
        await asyncio.sleep(max(0.03, self.rng.gauss(0.095, 0.025)))
        await self.page.mouse.up()

    async def human_typing(self, text: str) -> None:
        """Type with a pace of one's own, keys that overlap, and a thought now and then."""
        rng, keyboard = self.rng, self.page.keyboard
        moments: list[tuple[float, bool, str]] = []
        moment_s = rng.uniform(0.1, 0.3)
        for letter in text:
            moments.append((moment_s, True, letter))
            moments.append((moment_s + max(0.035, rng.gauss(0.095, 0.022)), False, letter))
            moment_s += max(0.03, math.exp(rng.gauss(math.log(self.pace_s), self.spread)))
            if rng.random() < 0.04:
                moment_s += rng.uniform(0.3, 1.1)
        began_s = time.monotonic()
        for after_s, is_down, letter in sorted(moments):
            await until(began_s + after_s)
            await (keyboard.down(letter) if is_down else keyboard.up(letter))

    async def human_form(self) -> None:
        await self.human_click("#email")
        await self.human_typing(self.email)
        await self.human_click("#password")
        await self.human_typing(self.secret)
        await self.human_click("#log-in")

    async def keyboard_only(self) -> None:
        await self.page.locator("#email").focus()
        await self.human_typing(self.email)
        await self.page.keyboard.press("Tab", delay=self.rng.uniform(50, 120))
        await self.human_typing(self.secret)
        await self.page.keyboard.press("Enter", delay=self.rng.uniform(50, 120))

    async def password_manager(self) -> None:
        """An extension fills both fields at once; the person clicks, or presses Enter."""
        await self.script_fill()
        if self.rng.random() < 0.5:
            await self.human_click("#log-in")
        else:
            await self.page.locator("#password").focus()
            await self.page.keyboard.press("Enter", delay=self.rng.uniform(50, 120))

    async def paster(self) -> None:
        """Both fields are pasted into, without typing; then a click."""
        await self.human_click("#email")
        await self.paste(self.email)
        await self.human_click("#password")
        await self.paste(self.secret)
        await self.human_click("#log-in")

    async def paste(self, text: str) -> None:
        await self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        await self.page.keyboard.press("Control+V", delay=self.rng.uniform(40, 100))

    # What programs do.

    async def script_fill(self) -> None:
        await self.page.evaluate(
            """values => { for (const [id, value] of Object.entries(values)) {
              const field = document.getElementById(id); field.value = value
              field.dispatchEvent(new Event('input', { bubbles: true })) } }""",
            {"email": self.email, "password": self.secret},
        )

    async def instant_fill(self) -> None:
        await self.page.fill("#email", self.email)
        await self.page.fill("#password", self.secret)
        await self.page.click("#log-in")

    async def instant_script(self) -> None:
        await self.script_fill()
        await self.page.evaluate("document.getElementById('log-in').click()")

    async def fixed_delay(self) -> None:
        delay_ms = self.rng.choice((0, 5, 10, 20, 30, 50, 75, 100, 150, 200))
        for selector, text in (("#email", self.email), ("#password", self.secret)):
            await self.page.click(selector)
            await self.page.keyboard.type(text, delay=delay_ms)
        await self.page.click("#log-in")

    async def fixed_delay_human_mouse(self) -> None:
        delay_ms = self.rng.choice((30, 50, 75, 100, 150, 200))
        for selector, text in (("#email", self.email), ("#password", self.secret)):
            await self.human_click(selector)
            await self.page.keyboard.type(text, delay=delay_ms)
        await self.human_click("#log-in")

    async def path(self, points: list[Point], pause_s: float) -> None:
        moment_s = time.monotonic()
        for x, y in points:
            moment_s += pause_s
            await until(moment_s)
            await self.page.mouse.move(x, y)
        self.at = points[-1]

    async def straight(self, to: Point) -> None:
        start, rng = self.at, self.rng
        if rng.random() < 0.5:
            await self.page.mouse.move(*to, steps=rng.randint(15, 50))
            self.at = to
            return
        steps = rng.randint(20, 60)
        eased = rng.random() < 0.5  # Some scripts speed up and slow down along the line.
        line = []
        for n in range(1, steps + 1):
            share = (1 - math.cos(math.pi * n / steps)) / 2 if eased else n / steps
            line.append((start[0] + (to[0] - start[0]) * share, start[1] + (to[1] - start[1]) * share))
        await self.path(line, rng.uniform(0.006, 0.016))

    async def steady_curve(self, to: Point) -> None:
        """A bent path at constant speed, as libraries that draw a Bézier curve make it."""
        start, rng = self.at, self.rng
        length = max(1.0, math.dist(start, to))
        bend = [rng.uniform(-0.35, 0.35) * length for _ in range(2)]
        across, down = (to[0] - start[0]) / length, (to[1] - start[1]) / length
        third = length / 3
        one = (start[0] + across * third - down * bend[0], start[1] + down * third + across * bend[0])
        two = (to[0] - across * third - down * bend[1], to[1] - down * third + across * bend[1])
        fine = []
        for n in range(401):
            t = n / 400
            weights = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
            corners = (start, one, two, to)
            fine.append(
                tuple(
                    sum(w * corner[axis] for w, corner in zip(weights, corners, strict=True))
                    for axis in (0, 1)
                )
            )
        total = sum(math.dist(p, q) for p, q in itertools.pairwise(fine))
        steps, gone, points = rng.randint(25, 60), 0.0, []
        for p, q in itertools.pairwise(fine):
            gone += math.dist(p, q)
            while len(points) < steps and gone >= total * (len(points) + 1) / steps - 1e-6:
                points.append((q[0], q[1]))
        await self.path(points, rng.uniform(0.008, 0.016))

    async def mouse_form(self, move: Callable[[Point], Awaitable[None]]) -> None:
        """The mouse as `move` does it; typing and presses as a person does them."""
        for selector, text in (("#email", self.email), ("#password", self.secret), ("#log-in", "")):
            await move(await middle_of(self.page, selector))
            await self.page.mouse.down()
            await asyncio.sleep(max(0.03, self.rng.gauss(0.095, 0.025)))
            await self.page.mouse.up()
            if text:
                await self.human_typing(text)

    async def straight_mouse(self) -> None:
        await self.mouse_form(self.straight)

    async def steady_mouse(self) -> None:
        await self.mouse_form(self.steady_curve)

    async def no_input(self) -> None:
        await self.page.evaluate(
            """values => {
              for (const [id, value] of Object.entries(values)) document.getElementById(id).value = value
              document.getElementById('login').requestSubmit() }""",
            {"email": self.email, "password": self.secret},
        )


PEOPLE = ("human_form", "keyboard_only", "password_manager", "paster")
PROGRAMS = (
    "instant_fill",
    "instant_script",
    "fixed_delay",
    "fixed_delay_human_mouse",
    "straight_mouse",
    "steady_mouse",
    "no_input",
)


async def session(browser: Browser, shop: str, kind: str, seed: int) -> tuple[str, dict[str, Any]]:
    context = await browser.new_context(user_agent=AGENT, viewport={"width": 1200, "height": 760})
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await context.new_page()
    try:
        await page.goto(f"{shop}/?core")
        await page.wait_for_selector("#decision")
        await page.wait_for_timeout(150)
        driver = Driver(page, random.Random(f"{kind} {seed}"))
        await getattr(driver, kind)()
        decision = "none"
        deadline_s = time.monotonic() + DECISION_S_MAX
        while decision in ("none", "asking") and time.monotonic() < deadline_s:
            await asyncio.sleep(0.05)
            decision = await page.evaluate("document.getElementById('decision').dataset.state")
        text = await page.evaluate("document.getElementById('sent').textContent")
        sent = json.loads(text) if text else {}
        return decision, sent.get("sdkSignals", {})
    finally:
        await context.close()


async def study(arguments: argparse.Namespace, shop: str) -> None:
    rows: list[dict[str, Any]] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=arguments.chromium,
            args=["--no-sandbox", "--disable-blink-features=AutomationControlled", "--disable-dev-shm-usage"],
        )
        turns = asyncio.Semaphore(arguments.abreast)

        async def one(kind: str, seed: int) -> None:
            async with turns:
                decision, signals = await session(browser, shop, kind, seed)
            row = {"kind": kind, "seed": seed, "decision": decision, "signals": signals}
            rows.append(row)
            if arguments.out:
                with arguments.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")

        for kind in arguments.kinds.split(","):
            began_s = time.monotonic()
            await asyncio.gather(*(one(kind, seed) for seed in range(arguments.sessions)))
            counts = collections.Counter(row["decision"] for row in rows if row["kind"] == kind)
            held = 1 - counts["ALLOW"] / arguments.sessions
            side = "people" if kind in PEOPLE else "programs"
            took_s = time.monotonic() - began_s
            print(f"{side:9} {kind:24} held {held:6.1%}  {dict(counts)}  {took_s:.0f} s", flush=True)
        await browser.close()


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--abreast", type=int, default=4)
    parser.add_argument("--kinds", default=",".join((*PEOPLE, *PROGRAMS)))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path, help="Write what was sent and decided, one JSON object a line.")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        service = stack.enter_context(launched(Path(folder)))
        shop = stack.enter_context(open_shop(service.target))
        asyncio.run(study(arguments, shop))


if __name__ == "__main__":
    main()
