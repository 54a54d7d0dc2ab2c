"""The dictionaries in `words/`: plain files that whoever knows names can read and extend."""

from collections.abc import Iterator
from importlib.resources import files

_FOLDER = files("vettance.reference") / "words"


def read_lines(name: str) -> Iterator[str]:
    """Yield the lines of a dictionary, without comments (`#`) and empty lines."""
    for line in (_FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def read_words(name: str) -> frozenset[str]:
    """Return the words of a dictionary that is a list of words."""
    return frozenset(word for line in read_lines(name) for word in line.split())


def read_pairs(name: str) -> dict[str, str]:
    """Return a dictionary of two words a line; `-` stands for nothing."""
    pairs = (line.split(" ", 1) for line in read_lines(name))
    return {key: "" if value == "-" else value for key, value in pairs}
