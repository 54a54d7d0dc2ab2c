"""Programs at the demo shop's login: each kind fills and sends the form as its tool does, in real time."""

import asyncio
import itertools
import math
import operator
import random
import time
from collections.abc import Awaitable, Callable

from playwright.async_api import CDPSession, Page

from bench.browser.people import FIELDS, Person, Point, login_of

DELAYS_MS = (0, 5, 10, 20, 30, 40, 50, 60, 75, 80, 100, 120, 150, 200, 250)
SCRIPT_FILL = """values => { for (const [id, value] of Object.entries(values)) {
  const field = document.getElementById(id.slice(1)); field.value = value
  field.dispatchEvent(new Event('input', { bubbles: true })) } }"""


async def until(moment_s: float) -> None:
    await asyncio.sleep(max(0.0, moment_s - time.monotonic()))


class Program:
    """One program: a page and what it does there. A person lends it a hand where the kind says so."""

    def __init__(self, page: Page, line: CDPSession, person: Person, rng: random.Random) -> None:
        self.page = page
        self.line = line
        self.person = person
        self.rng = rng
        self.texts = login_of(rng)
        self.at: Point = person.at

    async def lend(self, act: Callable[[Person], None]) -> None:
        """Have a person do one thing."""
        borrowed = Person(self.rng, self.person.boxes)
        borrowed.pace_s, borrowed.spread = self.person.pace_s, self.person.spread
        borrowed.at = self.at
        act(borrowed)
        await borrowed.act(self.line)
        await until(time.monotonic() + 0.1)
        self.at = borrowed.at

    # Filled without keys.

    async def filled_clicked(self) -> None:
        """The driver fills both fields and clicks."""
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.fill(selector, text)
        await self.page.click("#log-in")

    async def filled_entered(self) -> None:
        """The driver fills both fields and presses Enter."""
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.fill(selector, text)
        await self.page.keyboard.press("Enter")

    async def filled_by_script(self) -> None:
        """A script of the page sets the values, makes up input events, and clicks."""
        await self.page.evaluate(SCRIPT_FILL, dict(zip(FIELDS, self.texts, strict=True)))
        await self.page.evaluate("document.getElementById('log-in').click()")

    async def no_input(self) -> None:
        """A script sets the values and sends the form; nothing else happens at all."""
        await self.page.evaluate(
            """values => { for (const [id, value] of Object.entries(values))
                 document.querySelector(id).value = value
               document.getElementById('login').requestSubmit() }""",
            dict(zip(FIELDS, self.texts, strict=True)),
        )

    # Typed at a pace.

    async def typed(self, delay_ms: float) -> None:
        """The driver's own typing: each key is held for the delay, and the next follows at once."""
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.click(selector)
            await self.page.keyboard.type(text, delay=delay_ms)

    async def fixed_delay(self) -> None:
        await self.typed(self.rng.choice(DELAYS_MS))
        await self.page.click("#log-in")

    async def fixed_delay_keyboard(self) -> None:
        """The same without a mouse: focus, Tab and Enter."""
        delay_ms = self.rng.choice(DELAYS_MS)
        await self.page.focus(FIELDS[0])
        await self.page.keyboard.type(self.texts[0], delay=delay_ms)
        await self.page.keyboard.press("Tab")
        await self.page.keyboard.type(self.texts[1], delay=delay_ms)
        await self.page.keyboard.press("Enter")

    async def fixed_delay_hand(self) -> None:
        """The same with a person's mouse."""
        delay_ms = self.rng.choice([each for each in DELAYS_MS if each >= 30])
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.lend(operator.methodcaller("click", selector))
            await self.page.keyboard.type(text, delay=delay_ms)
        await self.lend(lambda person: person.click("#log-in"))

    async def fixed_sleep(self) -> None:
        """Keys of no length with a fixed sleep between, as other drivers type."""
        pause_s = self.rng.choice(DELAYS_MS) / 1000
        await self.slept(lambda: pause_s)

    async def fixed_sleep_keyboard(self) -> None:
        """The same without a mouse: focus, Tab and Enter."""
        pause_s = self.rng.choice(DELAYS_MS) / 1000
        await self.page.focus(FIELDS[0])
        for text, after in zip(self.texts, ("Tab", "Enter"), strict=True):
            for letter in text:
                await self.page.keyboard.press(letter)
                await asyncio.sleep(pause_s)
            await self.page.keyboard.press(after)

    async def slept(self, pause_s: Callable[[], float]) -> None:
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.click(selector)
            for letter in text:
                await self.page.keyboard.press(letter)
                await asyncio.sleep(pause_s())
        await self.page.click("#log-in")

    async def jittered(self) -> None:
        """The same with a little chance: a fifth either way."""
        pause_s = self.rng.choice([each for each in DELAYS_MS if each >= 50]) / 1000
        await self.slept(lambda: self.rng.uniform(0.8, 1.2) * pause_s)

    # Moved in ways of its own; typing and presses are a person's.

    async def path(self, points: list[Point], pause_s: float) -> None:
        moment_s = time.monotonic()
        for x, y in points:
            moment_s += pause_s
            await until(moment_s)
            await self.page.mouse.move(x, y)
        self.at = points[-1]

    async def mouse_form(self, move: Callable[[Point], Awaitable[None]]) -> None:
        for selector, text in zip((*FIELDS, "#log-in"), (*self.texts, ""), strict=True):
            box = self.person.boxes[selector]
            await move((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
            await self.page.mouse.down()
            await asyncio.sleep(max(0.03, self.rng.gauss(0.095, 0.025)))
            await self.page.mouse.up()
            if text:
                await self.lend(operator.methodcaller("type", text))

    async def straight_mouse(self) -> None:
        """In lines: the driver's own steps, steps at a pace, or speeding up and slowing down."""

        async def move(to: Point) -> None:
            start, way = self.at, self.rng.choice(("driver", "even", "eased", "eased"))
            steps = self.rng.randint(15, 60)
            if way == "driver":
                await self.page.mouse.move(*to, steps=steps)
                self.at = to
                return
            line = []
            for n in range(1, steps + 1):
                share = (1 - math.cos(math.pi * n / steps)) / 2 if way == "eased" else n / steps
                line.append((start[0] + (to[0] - start[0]) * share, start[1] + (to[1] - start[1]) * share))
            await self.path(line, self.rng.uniform(0.006, 0.016))

        await self.mouse_form(move)

    async def shaken_mouse(self) -> None:
        """In lines at a constant pace, with a pixel or two of noise."""

        async def move(to: Point) -> None:
            start, steps, noise = self.at, self.rng.randint(20, 60), self.rng.uniform(0.5, 2)
            line = []
            for n in range(1, steps + 1):
                x, y = (start[axis] + (to[axis] - start[axis]) * n / steps for axis in (0, 1))
                line.append((x + self.rng.gauss(0, noise), y + self.rng.gauss(0, noise)))
            await self.path([*line[:-1], to], self.rng.uniform(0.008, 0.016))

        await self.mouse_form(move)

    async def steady_mouse(self) -> None:
        """On a bent path at constant speed, as libraries that draw a Bézier curve make it."""

        async def move(to: Point) -> None:
            steps = self.rng.randint(25, 60)
            await self.path(bent(self.at, to, steps, self.rng), self.rng.uniform(0.008, 0.016))

        await self.mouse_form(move)


def bent(start: Point, to: Point, steps: int, rng: random.Random) -> list[Point]:
    """Return points at equal distances along a cubic Bézier curve."""
    length = max(1.0, math.dist(start, to))
    sides = [rng.uniform(-0.35, 0.35) * length for _ in range(2)]
    across, down = (to[0] - start[0]) / length, (to[1] - start[1]) / length
    third = length / 3
    one = (start[0] + across * third - down * sides[0], start[1] + down * third + across * sides[0])
    two = (to[0] - across * third - down * sides[1], to[1] - down * third + across * sides[1])
    fine: list[Point] = []
    for n in range(401):
        t = n / 400
        weights = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
        ends = list(zip(weights, (start, one, two, to), strict=True))
        fine.append((sum(w * end[0] for w, end in ends), sum(w * end[1] for w, end in ends)))
    total = sum(math.dist(p, q) for p, q in itertools.pairwise(fine))
    gone = 0.0
    points: list[Point] = []
    for p, q in itertools.pairwise(fine):
        gone += math.dist(p, q)
        while len(points) < steps and gone >= total * (len(points) + 1) / steps - 1e-6:
            points.append(q)
    return points


#: Names of the kinds.
KINDS = (
    "filled_clicked",
    "filled_entered",
    "filled_by_script",
    "no_input",
    "fixed_delay",
    "fixed_delay_keyboard",
    "fixed_delay_hand",
    "fixed_sleep",
    "fixed_sleep_keyboard",
    "jittered",
    "straight_mouse",
    "shaken_mouse",
    "steady_mouse",
)
