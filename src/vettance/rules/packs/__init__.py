"""Packs: rule sets that come with the service, one folder each, one YAML file for each family of rules."""

import functools
from importlib import resources

from vettance.rules.extension import Pack
from vettance.rules.ruleset import RuleSet, read_ruleset

_HEAD = "pack.yaml"  # Name, bounds and actions; the other files of a pack hold nothing but `rules:`.
_RULES = "rules:\n"


class PackUnknown(Exception):
    """There is no pack of this name."""


def pack_names() -> tuple[str, ...]:
    """Return the names of the packs that come with the service."""
    folders = resources.files(__name__).iterdir()
    return tuple(sorted(folder.name for folder in folders if folder.is_dir() and (folder / _HEAD).is_file()))


def load_pack_text(name: str) -> str:
    """Return a pack as one YAML document, its families in alphabetical order. Raises `PackUnknown`."""
    if name not in pack_names():
        raise PackUnknown(f"there is no pack {name!r}; there are {', '.join(pack_names())}")
    folder = resources.files(__name__) / name
    families = sorted(file.name for file in folder.iterdir() if file.name.endswith(".yaml"))
    families.remove(_HEAD)
    parts = [(folder / _HEAD).read_text("utf-8").rstrip("\n"), "\n\n", _RULES]
    for family in families:
        comment, _, rules = (folder / family).read_text("utf-8").partition(_RULES)
        parts += [comment, rules.rstrip("\n"), "\n\n"]
    return "".join(parts).rstrip("\n") + "\n"


@functools.cache
def default_pack(name: str) -> Pack:
    """Return a pack as one that rule sets build on: `extends: default`. Raises `PackUnknown`."""
    return Pack(("default", name), load_pack_text(name))


@functools.cache
def load_pack(name: str) -> RuleSet:
    """Return a pack as a rule set. Raises `PackUnknown`."""
    return read_ruleset(load_pack_text(name))
