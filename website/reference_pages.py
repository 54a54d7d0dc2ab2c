"""The reference, made from the tables of the code: it says what this version does, or does not build."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import click

from vettance import errors
from vettance.aml.features import aml_schema
from vettance.cli import main as command_line
from vettance.decisions.features import fraud_schema
from vettance.rules.manual import aggregate_entries, manual_table, word_entries
from vettance.rules.schema import Schema
from vettance.telemetry.meter_table import METERS
from website.api_pages import api_pages

#: Name of the page → what writes it. Settings and webhooks have pages by hand, held to their tables by tests.
_PAGES: Final[dict[str, Callable[[], str]]] = {}


def write_reference(folder: Path) -> int:
    """Write all generated pages into a folder; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {name: make() for name, make in _PAGES.items()} | api_pages()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    return len(pages)


def table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Write a table in Markdown; a bar within a cell is escaped."""
    lines = [heads, ("---",) * len(heads), *rows]
    escaped = ((cell.replace("|", "\\|") for cell in row) for row in lines)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def _page(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    def enter(make: Callable[[], str]) -> Callable[[], str]:
        _PAGES[name] = make
        return make

    return enter


@_page("commands")
def _commands() -> str:
    parts = ["# Commands\n\nWhat `vettance COMMAND --help` says. Every command takes `--help`.\n"]
    context = click.Context(command_line, info_name="vettance")
    for path, command in _walk(command_line, context):
        level = "#" * min(len(path) + 1, 4)
        parts.append(f"{level} {' '.join(('vettance', *path))}\n\n```text\n{command}\n```\n")
    return "\n".join(parts)


def _walk(
    group: click.Command, context: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    if path:
        yield path, group.get_help(context)
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                inside = click.Context(command, info_name=name, parent=context, max_content_width=100)
                yield from _walk(command, inside, (*path, name))


@_page("fields")
def _fields() -> str:
    return "\n".join(
        (
            "# Fields\n\nThe names that rules may use. A name whose value an event does not carry is"
            " unknown; a comparison with it is unknown too.\n",
            f"## In fraud rules\n\n{_field_table(fraud_schema())}\n",
            f"## In AML rules\n\n{_field_table(aml_schema())}\n",
        )
    )


def _field_table(schema: Schema) -> str:
    fields = ((f"`{name}`", field.type.value, field.doc) for name, field in sorted(schema.fields.items()))
    spaces = ((f"`{name}.…`", "any", space.doc) for name, space in sorted(schema.namespaces.items()))
    return table(("name", "type", "meaning"), chain(fields, spaces))


@_page("rule-words")
def _rule_words() -> str:
    return (
        "# Words of the rule language\n\nMade from the table of the language; [rules](../rules.md)"
        f" explains how they go together.\n\n## Functions\n\n{manual_table(word_entries())}\n\n"
        f"## Aggregates\n\n{manual_table(aggregate_entries())}\n"
    )


@_page("errors")
def _errors() -> str:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and "status" in vars(kind)]
    refusals = [kind for kind in kinds if issubclass(kind, errors.Refusal)]
    rows = (
        (str(kind.status), f"`{kind.code}`", " ".join((kind.__doc__ or "").partition(":")[2].split()))
        for kind in sorted(refusals, key=lambda kind: kind.status)
    )
    return (
        '# Errors\n\nEvery refusal is `{"error": {"code", "message", "details"}}`. Programs read'
        " `code`, people read `message`, and `details` names each faulty member by its path."
        " `X-Request-Id` is on every answer.\n\n" + table(("status", "code", "when"), rows) + "\n\n"
        "Do not repeat a request that was answered 4xx, but for 429, which says in `Retry-After` after"
        " how many seconds. Repeat 5xx with growing pauses and a bound; never repeat `POST /aml/screen`"
        " blindly.\n"
    )


@_page("metrics")
def _metrics() -> str:
    rows = (
        (f"`{meter.name}`", f"`{meter.label}`" if meter.label else "", _kind(meter), meter.help)
        for meter in METERS
    )
    return (
        "# Metrics\n\nWhat the address of `VETTANCE_METRICS` answers, for Prometheus"
        " ([operations](../operations.md#metrics)).\n\n"
        + table(("name", "label", "kind", "meaning"), rows)
        + "\n"
    )


def _kind(meter: Any) -> str:
    if meter.bounds:
        return "histogram"
    return "gauge" if meter.level else "counter"
