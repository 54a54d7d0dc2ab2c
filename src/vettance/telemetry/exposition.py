"""The exposition: figures as the text that Prometheus reads.

Version 0.0.4 of the text format (prometheus.io/docs/instrumenting/exposition_formats).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vettance.telemetry.meter_table import METERS, Meter
from vettance.telemetry.meters import reading

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Family(NamedTuple):
    """One metric: its kind (`counter`, `gauge`), and for each value of its label a figure."""

    name: str
    help: str
    kind: str
    label: str
    samples: Sequence[tuple[str, float]]


def exposition(slots: list[memoryview], families: Iterable[Family]) -> bytes:
    """Write everything counted in these slots, and what was measured just now."""
    lines: list[str] = []
    for meter in METERS:
        lines += _meter_lines(meter, slots)
    for family in families:
        if family.samples:
            lines += _head(family.name, family.help, family.kind)
            lines += [
                f"{family.name}{_labels(family.label, value)} {_number(figure)}"
                for value, figure in family.samples
            ]
    return ("\n".join(lines) + "\n").encode()


def _meter_lines(meter: Meter, slots: list[memoryview]) -> list[str]:
    kind = "histogram" if meter.bounds else "gauge" if meter.level else "counter"
    lines = _head(meter.name, meter.help, kind)
    for value in meter.values:
        words = reading(meter, value, slots)
        if not meter.bounds:
            lines.append(f"{meter.name}{_labels(meter.label, value)} {_number(words[0] * meter.unit)}")
            continue
        seen = 0
        for bound, count in zip((*map(_number, meter.bounds), "+Inf"), words[1:], strict=True):
            seen += count
            lines.append(f"{meter.name}_bucket{_labels(meter.label, value, bound)} {seen}")
        labels = _labels(meter.label, value)
        lines.append(f"{meter.name}_sum{labels} {_number(words[0] * meter.unit)}")
        lines.append(f"{meter.name}_count{labels} {seen}")
    return lines


def _head(name: str, text: str, kind: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _labels(label: str, value: str, bound: str = "") -> str:
    parts = [f'{label}="{_escaped(value)}"'] if label else []
    if bound:
        parts.append(f'le="{bound}"')
    return "{" + ",".join(parts) + "}" if parts else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(figure: float) -> str:
    return str(int(figure)) if figure == int(figure) else repr(round(figure, 9))
