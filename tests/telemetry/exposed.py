"""Reads the text format of Prometheus, strictly."""

import re

_SAMPLE = re.compile(r'([a-z_]+(?:\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z]+="[^"\\\n]*")*\})?) (\S+)')
_HEAD = re.compile(r"# (HELP|TYPE) ([a-z_]+) (.+)")


def figures(text: bytes) -> dict[str, float]:
    """Return every sample by its name with its labels."""
    found: dict[str, float] = {}
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] not in found, f"{match[1]} stands twice"
            found[match[1]] = float(match[2])
    return found


def read_exposition(text: bytes) -> dict[str, str]:
    """Return the kind of every metric, after a look at every line of the text."""
    assert text.endswith(b"\n")
    kinds: dict[str, str] = {}
    helped = ""
    for line in text.decode().splitlines():
        if line.startswith("#"):
            match = _HEAD.fullmatch(line)
            assert match, line
            if match[1] == "HELP":
                helped = match[2]
            else:
                assert match[2] == helped, "TYPE follows HELP"
                assert match[2] not in kinds
                kinds[match[2]] = match[3]
        else:
            name = line.partition("{")[0].partition(" ")[0]
            base = re.sub("_(bucket|sum|count)$", "", name) if kinds.get(helped) == "histogram" else name
            assert base == helped, line
    figures(text)
    return kinds
