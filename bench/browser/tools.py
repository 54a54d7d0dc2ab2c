"""More programs at the demo shop's login: what other tools and their usual recipes do, in real time."""

import asyncio
import math
import time
from collections.abc import Callable

from playwright.async_api import CDPSession

from bench.browser.people import FIELDS, Person, Point
from bench.browser.programs import DELAYS_MS, Program, until

#: Curves of speed that libraries offer for moving a pointer (R. Penner's easing functions).
EASINGS: dict[str, Callable[[float], float]] = {
    "linear": lambda t: t,
    "in": lambda t: t * t,
    "out": lambda t: t * (2 - t),
    "in-out": lambda t: 2 * t * t if t < 0.5 else 1 - 2 * (1 - t) ** 2,
    "sine": lambda t: (1 - math.cos(math.pi * t)) / 2,
}
SEND_VALUE = """([id, value]) => { const field = document.getElementById(id.slice(1))
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, value)
  for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, { bubbles: true })) }"""
MADE_UP_KEYS = """([id, value]) => { const field = document.getElementById(id.slice(1)); field.focus()
  for (const key of value) { field.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
    field.value += key; field.dispatchEvent(new InputEvent('input', { bubbles: true, data: key }))
    field.dispatchEvent(new KeyboardEvent('keyup', { key, bubbles: true })) } }"""


class Tool(Program):
    """One program of another make."""

    async def burst(self) -> None:
        """All keys of a text at once, as drivers send them, and a click."""
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.click(selector)
            for letter in text:
                await self.page.keyboard.press(letter)
        await self.page.click("#log-in")

    async def page_type(self) -> None:
        """Fields are focused by a script and typed into with a delay; Enter sends."""
        delay_ms = self.rng.choice(DELAYS_MS)
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.type(selector, text, delay=delay_ms)
        await self.page.keyboard.press("Enter")

    async def page_type_click(self) -> None:
        """The same, sent by a click."""
        delay_ms = self.rng.choice(DELAYS_MS)
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.type(selector, text, delay=delay_ms)
        await self.page.click("#log-in")

    async def raw_keys(self) -> None:
        """Key events of the protocol with a fixed hold and a fixed pause between."""
        hold_s, pause_s = self.rng.choice((0, 0.02, 0.05, 0.08)), self.rng.choice(DELAYS_MS[2:]) / 1000
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.click(selector)
            for letter in text:
                await self.page.keyboard.down(letter)
                await asyncio.sleep(hold_s)
                await self.page.keyboard.up(letter)
                await asyncio.sleep(pause_s)
        await self.page.click("#log-in")

    async def jittered_keyboard(self) -> None:
        """Keys of no length, a pause with a fifth of chance, no mouse."""
        pause_s = self.rng.choice([each for each in DELAYS_MS if each >= 50]) / 1000
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.focus(selector)
            for letter in text:
                await self.page.keyboard.press(letter)
                await asyncio.sleep(pause_s * self.rng.uniform(0.8, 1.2))
        await self.page.keyboard.press("Enter")

    async def inserted(self) -> None:
        """Text of the protocol, field by field, and Enter."""
        for selector, text in zip(FIELDS, self.texts, strict=True):
            await self.page.focus(selector)
            await self.page.keyboard.insert_text(text)
        await self.page.keyboard.press("Enter")

    async def framework_values(self) -> None:
        """Values set behind the back of a framework, and a script's click."""
        for pair in zip(FIELDS, self.texts, strict=True):
            await self.page.evaluate(SEND_VALUE, list(pair))
        await self.page.evaluate("document.getElementById('log-in').click()")

    async def made_up_keys(self) -> None:
        """Every event is made up by a script."""
        for pair in zip(FIELDS, self.texts, strict=True):
            await self.page.evaluate(MADE_UP_KEYS, list(pair))
        await self.page.evaluate("document.getElementById('login').requestSubmit()")

    async def tweened(self, easing: str, pause_s: float, steps: int) -> None:
        """Move in lines as tweens do; typing is a person's."""

        async def move(to: Point) -> None:
            start, way = self.at, EASINGS[easing]
            line = []
            for n in range(1, steps + 1):
                done = way(n / steps)
                line.append((start[0] + (to[0] - start[0]) * done, start[1] + (to[1] - start[1]) * done))
            await self.path(line, pause_s)

        await self.mouse_form(move)

    async def tween_mouse(self) -> None:
        await self.tweened(
            self.rng.choice(list(EASINGS)), self.rng.uniform(0.005, 0.02), self.rng.randint(12, 80)
        )

    async def curve_mouse(self) -> None:
        """A quadratic Bézier curve in equal steps of its parameter."""

        async def move(to: Point) -> None:
            start, steps, rng = self.at, self.rng.randint(20, 60), self.rng
            length = max(1.0, math.dist(start, to))
            side = rng.uniform(-0.3, 0.3) * length
            across, down = (to[0] - start[0]) / length, (to[1] - start[1]) / length
            bend = (
                (start[0] + to[0]) / 2 - down * side,
                (start[1] + to[1]) / 2 + across * side,
            )
            line = []
            for n in range(1, steps + 1):
                t = n / steps
                weights = (1 - t) ** 2, 2 * t * (1 - t), t * t
                x, y = (
                    sum(weight * end[axis] for weight, end in zip(weights, (start, bend, to), strict=True))
                    for axis in (0, 1)
                )
                line.append((x, y))
            await self.path(line, rng.uniform(0.006, 0.016))

        await self.mouse_form(move)

    async def driver_mouse(self) -> None:
        """The driver's own moves in a few steps, all sent at once; typing with a fixed delay."""
        delay_ms = self.rng.choice(DELAYS_MS)
        for selector, text in zip((*FIELDS, "#log-in"), (*self.texts, ""), strict=True):
            box = self.person.boxes[selector]
            spot = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            await self.page.mouse.move(*spot, steps=self.rng.choice((5, 10, 20, 40)))
            await self.page.mouse.down()
            await self.page.mouse.up()
            if text:
                await self.page.keyboard.type(text, delay=delay_ms)


class Replay(Person):
    """A person whose events are sent one after the other at their times, as drivers do, and bear no time."""

    async def act(self, line: CDPSession) -> None:
        began_s = time.monotonic()
        for after_s, _, method, said in sorted(self._moments, key=lambda moment: moment[:2]):
            await until(began_s + after_s)
            await line.send(method, said)


#: Names of the kinds.
TOOLS = (
    "burst",
    "page_type",
    "page_type_click",
    "raw_keys",
    "jittered_keyboard",
    "inserted",
    "framework_values",
    "made_up_keys",
    "tween_mouse",
    "curve_mouse",
    "driver_mouse",
)
