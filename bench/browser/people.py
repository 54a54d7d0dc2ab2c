"""People at the demo shop's login, made up: what they do is planned as timed input and handed to Chromium.

Each moment of a plan becomes an input event of the DevTools protocol that carries the planned time, so that
a busy machine does not smear what the page measures; events are sent when they are due, a tenth of a second
at a time. Paces follow published figures: intervals between keys are log-normal around a person's own pace
(mean 239 ms, standard deviation 112 ms over 168,000 people, the fastest near 120 ms: Dhakal and others 2018),
keys are held for 70 to 130 ms and overlap as they then must, strokes of the mouse follow minimum jerk
(Flash and Hogan 1985) with a bend, tremor and at times a correction.
"""

import asyncio
import math
import random
import time
from typing import Any

from playwright.async_api import CDPSession

SLICE_S = 0.1
WORDS = ("anna", "mertens", "kowalski", "shop", "blue", "harbour", "lena", "paper", "stone", "quick")
FIELDS = ("#email", "#password")
Point = tuple[float, float]
Box = dict[str, float]
_CODES = {".": "Period", "-": "Minus", "@": "Quote", "Tab": "Tab", "Enter": "Enter", "Backspace": "Backspace"}
_VIRTUAL = {"Tab": 9, "Enter": 13, "Backspace": 8, ".": 190, "-": 189, "@": 222}


class Person:
    """One person: a pace, a hand, and a plan of what to do at the form, in seconds from its beginning."""

    def __init__(self, rng: random.Random, boxes: dict[str, Box]) -> None:
        self.rng = rng
        self.boxes = boxes
        self.now_s = rng.uniform(0.1, 0.4)
        self.at: Point = (rng.uniform(50, 900), rng.uniform(50, 500))
        self.pace_s = math.exp(rng.gauss(math.log(0.19), 0.3))
        self.spread = rng.uniform(0.28, 0.6)
        self.hold_s = rng.uniform(0.07, 0.13)
        self.slips = 0.0
        self.texts = login_of(rng)
        self._moments: list[tuple[float, int, str, dict[str, Any]]] = []

    def add(self, at_s: float, method: str, **said: Any) -> None:
        self._moments.append((at_s, len(self._moments), method, said))

    def key(self, name: str, at_s: float, hold_s: float) -> None:
        """One key, down and up."""
        code = _CODES.get(name) or (f"Digit{name}" if name.isdigit() else f"Key{name.upper()}")
        number = _VIRTUAL.get(name) or ord(name.upper())
        same = {"key": name, "code": code, "windowsVirtualKeyCode": number}
        text = {"Enter": "\r"}.get(name, name)
        if len(text) == 1:
            self.add(at_s, "Input.dispatchKeyEvent", type="keyDown", text=text, **same)
        else:
            self.add(at_s, "Input.dispatchKeyEvent", type="rawKeyDown", **same)
        self.add(at_s + hold_s, "Input.dispatchKeyEvent", type="keyUp", **same)

    def hold(self) -> float:
        return max(0.035, self.rng.gauss(self.hold_s, self.hold_s * 0.22))

    def tap(self, name: str) -> None:
        """A key by itself, after a moment's thought."""
        self.now_s += self.rng.uniform(0.15, 0.6)
        held_s = self.hold()
        self.key(name, self.now_s, held_s)
        self.now_s += held_s + self.rng.uniform(0.05, 0.3)

    def type(self, text: str) -> None:
        """Type at a pace of one's own, with keys that overlap, a thought now and then, and perhaps slips."""
        rng = self.rng
        self.now_s += rng.uniform(0.1, 0.4)
        letters = []
        for letter in text:
            if rng.random() < self.slips:
                letters += ["x", "Backspace"]
            letters.append(letter)
        for letter in letters:
            self.key(letter, self.now_s, self.hold())
            self.now_s += max(0.025, math.exp(rng.gauss(math.log(self.pace_s), self.spread)))
            if rng.random() < 0.04:
                self.now_s += rng.uniform(0.3, 1.1)

    def mouse(self, kind: str, at_s: float, **said: Any) -> None:
        self.add(at_s, "Input.dispatchMouseEvent", type=kind, x=self.at[0], y=self.at[1], **said)

    def stroke(self, to: Point) -> None:
        """Move as a hand does: bell-shaped speed, a bend, tremor, and at times a correction at the end."""
        rng, start = self.rng, self.at
        if math.dist(start, to) < 3:
            return
        aims = [to]
        if rng.random() < 0.6:
            over = rng.uniform(-0.12, 0.12)
            past = [to[axis] + (to[axis] - start[axis]) * over + rng.gauss(0, 6) for axis in (0, 1)]
            aims = [(past[0], past[1]), to]
        ticks = rng.choice(((0.007, 0.008, 0.008, 0.009, 0.016), (0.014, 0.016, 0.017, 0.019, 0.033)))
        for aim in aims:
            begin, length = self.at, math.dist(self.at, aim)
            took_s = 0.12 + 0.11 * math.log2(1 + length / 20) * rng.uniform(0.8, 1.3)
            bend = rng.gauss(0, 0.11) + math.copysign(0.05, rng.random() - 0.5)
            began_s, share = self.now_s, 0.0
            while share < 1:
                self.now_s += rng.choice(ticks)
                share = min(1.0, (self.now_s - began_s) / took_s)
                done = 10 * share**3 - 15 * share**4 + 6 * share**5
                side = math.sin(math.pi * done) * bend * length
                across, down = aim[0] - begin[0], aim[1] - begin[1]
                norm = max(1.0, math.hypot(across, down))
                x = begin[0] + across * done - down / norm * side + rng.gauss(0, 0.6)
                y = begin[1] + down * done + across / norm * side + rng.gauss(0, 0.6)
                self.at = (x, y)
                self.mouse("mouseMoved", self.now_s)
            self.now_s += rng.uniform(0.02, 0.1)

    def follow(self, recording: list[tuple[float, float, float]], to: Point) -> None:
        """Move as a recording of (x, y, milliseconds) did, shifted so that it ends at a point."""
        self.now_s += 0.2
        *_, (last_x, last_y, last_ms) = recording
        began_s = self.now_s
        for x, y, at_ms in recording:
            self.at = (to[0] + x - last_x, to[1] + y - last_y)
            self.mouse("mouseMoved", began_s + at_ms / 1000)
        self.now_s = began_s + last_ms / 1000

    def target(self, selector: str) -> Point:
        box, rng = self.boxes[selector], self.rng
        across, down = rng.uniform(0.2, 0.8), rng.uniform(0.25, 0.75)
        return box["x"] + box["width"] * across, box["y"] + box["height"] * down

    def press(self, hold_s: float | None = None) -> None:
        held_s = max(0.04, self.rng.gauss(0.095, 0.025)) if hold_s is None else hold_s
        button = {"button": "left", "clickCount": 1}
        self.mouse("mousePressed", self.now_s, **button)
        self.mouse("mouseReleased", self.now_s + held_s, **button)
        self.now_s += held_s

    def click(self, selector: str) -> None:
        self.stroke(self.target(selector))
        self.now_s += self.rng.uniform(0.05, 0.25)
        self.press()

    def touch(self, selector: str) -> None:
        x, y = self.target(selector)
        self.now_s += self.rng.uniform(0.3, 1.0)
        self.add(self.now_s, "Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.now_s += max(0.03, self.rng.gauss(0.08, 0.02))
        self.add(self.now_s, "Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def insert(self, text: str) -> None:
        """Text without a key, as dictation and keyboards on glass send it."""
        self.add(self.now_s, "Input.insertText", text=text)

    async def act(self, line: CDPSession) -> None:
        """Have Chromium see the plan, each event at its time."""
        began_s = time.time()
        waiting = []
        for after_s, _, method, said in sorted(self._moments, key=lambda moment: moment[:2]):
            ahead_s = began_s + after_s - time.time()
            if ahead_s > 0:
                # What is due within one slice goes together; its events carry their own times.
                await asyncio.sleep(math.ceil(ahead_s / SLICE_S) * SLICE_S)
            if method != "Input.insertText":
                said["timestamp"] = began_s + after_s
            waiting.append(asyncio.ensure_future(line.send(method, said)))
        await asyncio.gather(*waiting)


def login_of(rng: random.Random) -> tuple[str, str]:
    """Return an e-mail address and a password."""
    words = [rng.choice(WORDS) for _ in range(4)]
    return (
        f"{words[0]}.{words[1]}{rng.randint(1, 99)}@example.com",
        f"{words[2]}-{words[3]}{rng.randint(10, 99)}",
    )


def fill_form(person: Person) -> None:
    """Click into each field, type, and click the button."""
    for selector, text in zip(FIELDS, person.texts, strict=True):
        person.click(selector)
        person.type(text)
    person.click("#log-in")


def any_typist(person: Person) -> None:
    fill_form(person)


def fast_typist(person: Person) -> None:
    person.pace_s, person.spread = person.rng.uniform(0.1, 0.14), person.rng.uniform(0.28, 0.45)
    person.hold_s = person.rng.uniform(0.07, 0.1)
    fill_form(person)


def slow_typist(person: Person) -> None:
    """Two fingers, and slips that are put right."""
    person.pace_s, person.spread = person.rng.uniform(0.3, 0.6), person.rng.uniform(0.3, 0.6)
    person.slips = 0.05
    fill_form(person)


def keyboard_only(person: Person) -> None:
    person.tap("Tab")
    person.type(person.texts[0])
    person.tap("Tab")
    person.type(person.texts[1])
    person.tap("Enter")


def phone(person: Person) -> None:
    """Fingers on glass: whole words and letters without keys."""
    for selector, text in zip(FIELDS, person.texts, strict=True):
        person.touch(selector)
        for letter in text:
            person.now_s += math.exp(person.rng.gauss(math.log(0.26), 0.4))
            person.insert(letter)
    person.touch("#log-in")


def dictation(person: Person) -> None:
    """An assistive tool: each field is spoken, the button is pressed by voice: in no time, without a way."""
    for selector, text in zip((*FIELDS, "#log-in"), (*person.texts, ""), strict=True):
        person.now_s += person.rng.uniform(1.2, 3.5)
        person.at = person.target(selector)
        person.mouse("mouseMoved", person.now_s)
        person.press(person.rng.uniform(0.001, 0.004))
        if text:
            person.now_s += person.rng.uniform(1.0, 2.5)
            person.insert(text)


def screen_keyboard(person: Person) -> None:
    """An assistive tool: keys of no length at the pace of a pointer that looks for each."""
    person.tap("Tab")
    for text in person.texts:
        for letter in text:
            person.now_s += math.exp(person.rng.gauss(math.log(0.8), 0.35))
            person.key(letter, person.now_s, person.rng.uniform(0.001, 0.006))
        person.now_s += person.rng.uniform(0.8, 2.0)
        person.key("Enter" if text is person.texts[1] else "Tab", person.now_s, 0.002)


#: Plans by the name of the kind. The rest of the people need the page and stand with the study.
PLANS = {
    plan.__name__: plan
    for plan in (any_typist, fast_typist, slow_typist, keyboard_only, phone, dictation, screen_keyboard)
}
