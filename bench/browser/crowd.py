"""More people at the demo shop's login, made by other models than those of `people.py`.

Flights and holds are drawn apart (three-parameter log-logistic holds, log-normal flights by pair of hands:
the shapes that fit recorded typing best, Heliyon 7, e08413, 2021), a text known by heart is typed at a
beat of its own, and mice report as their hardware does: 1,000 times a second, every 8 ms, or in small steps.
"""

import math
from collections.abc import Callable

from bench.browser.people import FIELDS, Person, Point

LEFT = frozenset("qwertasdfgzxcvb12345")


def typed(person: Person, text: str, flight_s: float, spread: float, hold_s: float) -> None:
    """Fingers of two hands: a change of hands is quick and may overlap, one finger twice is slow."""
    rng, before = person.rng, ""
    at_s = up_s = person.now_s + rng.uniform(0.2, 0.5)
    for letter in text:
        if before:
            same = letter == before or (letter in LEFT) == (before in LEFT)
            flight = math.exp(rng.gauss(math.log(flight_s * (1.35 if same else 0.9)), spread))
            # The next finger is on its way while the last key is still down.
            at_s = max(at_s + 0.025, up_s + flight - hold_s * (0.4 if same else 0.9))
        share = rng.uniform(0.02, 0.98)
        held_s = 0.035 + (hold_s - 0.035) * (share / (1 - share)) ** 0.18
        person.key(letter, at_s, held_s)
        up_s, before = at_s + held_s, letter
    person.now_s = up_s + rng.uniform(0.1, 0.3)


def form(person: Person, point: Callable[[str], None], write: Callable[[str], None]) -> None:
    for selector, text in zip(FIELDS, person.texts, strict=True):
        point(selector)
        write(text)
    point("#log-in")


def rollover_typist(person: Person) -> None:
    """Ten fingers, a third of the keys pressed before the last is let go."""
    rng = person.rng
    hold_s, flight_s = rng.uniform(0.085, 0.13), rng.uniform(0.06, 0.1)
    form(person, person.click, lambda text: typed(person, text, flight_s, rng.uniform(0.35, 0.5), hold_s))


def hunting_typist(person: Person) -> None:
    """One finger that looks for each key."""
    rng = person.rng
    hold_s, flight_s = rng.uniform(0.07, 0.16), rng.uniform(0.25, 0.6)
    form(person, person.click, lambda text: typed(person, text, flight_s, rng.uniform(0.35, 0.6), hold_s))


def by_heart(person: Person) -> None:
    """A login typed a thousand times, by keyboard alone: each pair of keys at its own pace, hardly varied."""
    rng = person.rng
    beat_s, hold_s = rng.uniform(0.11, 0.2), rng.uniform(0.07, 0.11)
    person.tap("Tab")
    for text, after in zip(person.texts, ("Tab", "Enter"), strict=True):
        for letter in text:
            person.key(letter, person.now_s, hold_s * rng.lognormvariate(0, 0.16))
            pair = math.exp(rng.gauss(0, 0.38))
            person.now_s += max(0.03, beat_s * pair * rng.lognormvariate(0, 0.1))
        person.tap(after)


def reported(person: Person, to: Point, every_s: Callable[[], float]) -> None:
    """A bent reach of log-normal speed, reported by a device at its own pace in whole pixels."""
    rng, start = person.rng, person.at
    length = math.dist(start, to)
    if length < 3:
        return
    took_s = 0.18 + 0.16 * math.log2(1 + length / 25) * rng.uniform(0.8, 1.4)
    peak = rng.uniform(0.28, 0.42)
    bend, wave = rng.gauss(0, 0.12), rng.gauss(0, 0.03)
    across, down = (to[0] - start[0]) / length, (to[1] - start[1]) / length
    began_s, share, told = person.now_s, 0.0, None
    while share < 1:
        person.now_s += every_s()
        share = min(1.0, (person.now_s - began_s) / took_s)
        # The way is the distribution function of a log-normal: quick to start, slow to arrive.
        done = 0.5 * (1 + math.erf((math.log(max(share, 1e-6)) - math.log(peak)) / (0.45 * math.sqrt(2))))
        done = min(1.0, done / 0.5 / (1 + math.erf(-math.log(peak) / (0.45 * math.sqrt(2)))))
        side = (math.sin(math.pi * done) * bend + math.sin(3 * math.pi * done) * wave) * length
        x = start[0] + across * length * done - down * side + rng.gauss(0, 0.3)
        y = start[1] + down * length * done + across * side + rng.gauss(0, 0.3)
        person.at = (round(x), round(y))
        if person.at != told:
            person.mouse("mouseMoved", person.now_s)
            told = person.at


def pointed(person: Person, selector: str, every_s: Callable[[], float]) -> None:
    reported(person, person.target(selector), every_s)
    person.now_s += person.rng.uniform(0.08, 0.3)
    person.press()


def usual(person: Person, text: str) -> None:
    typed(person, text, 0.12, 0.45, 0.095)


def fast_mouse(person: Person) -> None:
    """A mouse that reports a thousand times a second; browsers hand that over once a frame."""
    form(
        person,
        lambda at: pointed(person, at, lambda: 0.001 * person.rng.choice((1, 1, 1, 2))),
        lambda text: usual(person, text),
    )


def trackpad(person: Person) -> None:
    """Every 8 ms and now and then a report later, in two reaches with a lift between."""

    def point(selector: str) -> None:
        rng = person.rng
        half, end = rng.uniform(0.4, 0.7), person.target(selector)
        between = tuple(
            person.at[axis] + (end[axis] - person.at[axis]) * half + rng.gauss(0, 25) for axis in (0, 1)
        )
        reported(person, (between[0], between[1]), lambda: rng.choice((0.008, 0.008, 0.009, 0.016)))
        person.now_s += rng.uniform(0.15, 0.4)
        pointed(person, selector, lambda: rng.choice((0.008, 0.008, 0.009, 0.016)))

    form(person, point, lambda text: usual(person, text))


def trackpoint(person: Person) -> None:
    """A stick in the keyboard: three short pushes, each nearly straight, each of its own direction."""

    def point(selector: str) -> None:
        rng, end = person.rng, person.target(selector)
        for left in (3, 2, 1):
            part = 1 / left
            goal = tuple(
                person.at[axis] + (end[axis] - person.at[axis]) * part + rng.gauss(0, 12 * (left - 1))
                for axis in (0, 1)
            )
            reported(person, (goal[0], goal[1]), lambda: rng.choice((0.01, 0.01, 0.011, 0.02)))
            person.now_s += rng.uniform(0.05, 0.4)
        person.press()

    form(person, point, lambda text: usual(person, text))


def swiping_phone(person: Person) -> None:
    """Whole words at once by swiping and by the bar of suggestions, then letters."""
    for selector, text in zip(FIELDS, person.texts, strict=True):
        person.touch(selector)
        head, tail = text[: len(text) // 2], text[len(text) // 2 :]
        person.now_s += person.rng.uniform(0.6, 1.4)
        person.insert(head)
        for letter in tail:
            person.now_s += math.exp(person.rng.gauss(math.log(0.22), 0.4))
            person.insert(letter)
    person.touch("#log-in")


def remembered(person: Person) -> None:
    """Name by keyboard alone, a slow password with a pause in the middle, Enter."""
    person.tap("Tab")
    typed(person, person.texts[0], 0.16, 0.5, 0.11)
    person.tap("Tab")
    typed(person, person.texts[1][:5], 0.3, 0.5, 0.12)
    person.now_s += person.rng.uniform(0.5, 1.8)
    typed(person, person.texts[1][5:], 0.25, 0.5, 0.12)
    person.tap("Enter")


def remote_desktop(person: Person) -> None:
    """A hand and fingers far away: what carries them lets each key go as soon as it went down."""
    rng = person.rng

    def write(text: str) -> None:
        person.now_s += rng.uniform(0.2, 0.5)
        for letter in text:
            person.key(letter, person.now_s, rng.uniform(0.0005, 0.003))
            person.now_s += math.exp(rng.gauss(math.log(0.17), 0.45))

    form(person, person.click, write)


#: Plans by the name of the kind.
CROWD = {
    plan.__name__: plan
    for plan in (
        rollover_typist,
        hunting_typist,
        by_heart,
        remembered,
        fast_mouse,
        trackpad,
        trackpoint,
        swiping_phone,
        remote_desktop,
    )
}
