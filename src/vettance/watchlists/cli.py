"""The command line of watchlists: import, refresh, list, compare and evaluate them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from vettance import clock
from vettance.commands import (
    Result,
    counted_word,
    data_option,
    fail,
    find_tenant,
    has_store,
    json_option,
    run_with_store,
    settings_of,
    show,
    show_table,
)
from vettance.option_types import StoredFile, Whole
from vettance.watchlists import sql
from vettance.watchlists.sources.formats import SourceFault
from vettance.watchlists.sources.own import doubts_of
from vettance.watchlists.sources.source_table import OWN, SOURCES
from vettance.watchlists.subject_screening import Profile

if TYPE_CHECKING:
    from vettance.db.engine import Store
    from vettance.settings.settings import Settings
    from vettance.watchlists.index import Index
    from vettance.watchlists.list_store import Version
    from vettance.watchlists.refresh import ImportResult, Progress

_WARNINGS_SHOWN = 20  # The answer in JSON has all of them.

_files = click.argument("paths", nargs=-1, metavar="FILE…", type=StoredFile())
#: All names between brackets, as Click shows a choice, would be one line that no window is wide enough for.
_NAMES = ", ".join(SOURCES)
_NAMED: dict[str, Any] = {"metavar": "NAME", "type": click.Choice(list(SOURCES))}
_source_option = click.option("--source", required=True, help=f"Which list it is: {_NAMES}.", **_NAMED)
_smaller_option = click.option(
    "--accept-smaller", "smaller", is_flag=True, help="Take a list over although it lost many entities."
)
_tenant_option = click.option(
    "--tenant", metavar="ID", help="The tenant whose own list it is, screened and seen by nobody else."
)


@click.group()
def watchlist() -> None:
    """Import, refresh, compare and evaluate sanctions and other watchlists.

    Example: vettance watchlist import --source sample
    """


@contextmanager
def _progress(*, as_json: bool) -> Iterator[Progress]:
    """Show a line of progress on standard error, where a person watches."""
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    quiet = as_json or not sys.stderr.isatty()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda step, count: bar.update(task, description=f"{step}, {count:,} entities")


def _run(
    data: str | None, work: Callable[[Store, Settings], Coroutine[Any, Any, Result]], *, make: bool = False
) -> Result:
    from vettance.watchlists.index import IndexFault
    from vettance.watchlists.refresh import ListRefused

    try:
        return run_with_store(data, work, make=make)
    except (SourceFault, ListRefused, IndexFault) as error:
        fail(str(error))


def _import_details(done: ImportResult) -> dict[str, Any]:
    version = done.version
    return {
        "source": version.source,
        "version": version.version,
        "entities": version.entities,
        "names": version.names,
        "changed": done.changed,
        "index": done.index,
    }


def _words(done: ImportResult) -> str:
    version = done.version
    text = (
        f"{SOURCES[version.source].title}: {counted_word(version.entities, 'entity')} with "
        f"{counted_word(version.names, 'name')}, version {version.version}"
    )
    if done.entities_before:
        more = version.entities - done.entities_before
        text += (
            f" ({more:+,} {'entity' if abs(more) == 1 else 'entities'})" if done.changed else " (unchanged)"
        )
    if version.source == "sample":
        text += "\nTHIS IS A SAMPLE of a few dozen designations, to try things out; it protects nobody"
    return text + "."


async def _owned(store: Store, source: str, tenant: str | None) -> tuple[str, str]:
    """Return (source, owner) of what the options name; a tenant's own list is a source of its own."""
    from vettance.watchlists.list_store import EVERYBODY

    if tenant is None:
        if source == OWN:
            fail(f"--source {OWN} goes with --tenant")
        return source, EVERYBODY
    if source not in ("csv", OWN):
        fail("a tenant's own list is imported with --source csv; other lists are everybody's")
    await find_tenant(store, tenant)
    return OWN, tenant


@watchlist.command("import")
@_source_option
@_files
@_tenant_option
@_smaller_option
@json_option
@data_option
def import_files(
    source: str,
    paths: tuple[Path, ...],
    tenant: str | None,
    smaller: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Import the files of one list. A running server screens with it within seconds.

    The files of a set (OFAC's CSV files) may stand in any order. `--source sample` needs no file. With
    --source csv and --tenant, the list is that tenant's own.

    Example: vettance watchlist import --source us_ofac_sdn sdn.csv alt.csv add.csv sdn_comments.csv
    """
    from vettance.watchlists.refresh import import_list

    if source == "sample" and not paths:
        paths = (Path(__file__).parent / "sample" / "sample.csv",)
    if not paths:
        fail("name the files of the list")
    with _progress(as_json=as_json) as progress:

        async def work(store: Store, settings: Settings) -> ImportResult:
            name, owner = await _owned(store, source, tenant)
            now_ms = clock.now_ms()
            return await import_list(
                store, settings.data, name, paths, now_ms, smaller=smaller, progress=progress, owner=owner
            )

        done = _run(data, work, make=True)
    warnings = [*doubts_of(paths)] if source in ("csv", OWN) else []
    for warning in warnings[:_WARNINGS_SHOWN]:
        click.echo(f"Warning: {warning}", err=True)
    if len(warnings) > _WARNINGS_SHOWN:
        click.echo(f"Warning: {len(warnings) - _WARNINGS_SHOWN:,} more are like that.", err=True)
    show(_import_details(done) | {"warnings": warnings}, _words(done), as_json=as_json)


@watchlist.command("remove")
@_source_option
@_tenant_option
@json_option
@data_option
def remove(source: str, tenant: str | None, as_json: bool, data: str | None) -> None:
    """Screen against a list no longer. Its versions are kept, and importing it again brings it back.

    Example: vettance watchlist remove --source sample
    """
    from vettance.watchlists.refresh import remove_list

    async def work(store: Store, settings: Settings) -> Version | None:
        name, owner = await _owned(store, source, tenant)
        return await remove_list(store, settings.data, name, clock.now_ms(), owner)

    gone = _run(data, work)
    if gone is None:
        fail(f"{source} is not screened against; `vettance watchlist list` shows what is")
    result = {"source": gone.source, "version": gone.version, "entities": gone.entities}
    text = f"{gone.source} is screened against no longer: {counted_word(gone.entities, 'entity')}."
    show(result, text, as_json=as_json)


@watchlist.command("refresh")
@click.option(
    "--source", "sources", multiple=True, help=f"Only this list; may be repeated: {_NAMES}.", **_NAMED
)
@click.option("--url", "urls", multiple=True, help="Fetch from here instead; with one --source.")
@_smaller_option
@json_option
@data_option
def refresh(
    sources: tuple[str, ...], urls: tuple[str, ...], smaller: bool, as_json: bool, data: str | None
) -> None:
    """Fetch lists from their publishers: those imported before, or those named.

    A list that cannot be fetched or looks broken keeps its last good version; the exit code is then 1. --json
    answers with an array.

    Example: vettance watchlist refresh --source un_sc
    """
    from vettance.watchlists.refresh import ListRefused, refresh_list

    if urls and len(sources) != 1:
        fail("--url goes with exactly one --source")
    faults: list[str] = []
    with _progress(as_json=as_json) as progress:

        async def work(store: Store, settings: Settings) -> list[ImportResult]:
            current = [sql.version_of(row) for row in await store.read(sql.select_current())]
            known = [stored.version.source for stored in current]
            wanted = sources or tuple(name for name in known if SOURCES[name].urls)
            if not wanted:
                fail("no list is imported yet; name one with --source")
            done = []
            for name in wanted:
                try:
                    now_ms = clock.now_ms()
                    one = await refresh_list(
                        store, settings.data, name, now_ms, urls=urls, smaller=smaller, progress=progress
                    )
                    done.append(one)
                except (SourceFault, ListRefused) as error:
                    faults.append(f"{name}: {error}")
            return done

        finished = _run(data, work, make=True)
    show([_import_details(one) for one in finished], "\n".join(map(_words, finished)), as_json=as_json)
    if faults:
        fail("; ".join(faults))


@watchlist.command("list")
@click.option("--all", "every", is_flag=True, help="Show every version kept, not only the current ones.")
@json_option
@data_option
def list_versions(every: bool, as_json: bool, data: str | None) -> None:
    """List the lists with their versions, counts, the day of their data and the age of their import.

    Where a publisher states no day in its files, that is unknown.

    Example: vettance watchlist list --data ./vettance-data
    """
    from vettance.watchlists.listing import for_people, listed

    async def work(store: Store, _settings: Settings) -> list[sql.StoredVersion]:
        statement = sql.select_versions() if every else sql.select_all_current()
        return [sql.version_of(row) for row in await store.read(statement)]

    now_ms = clock.now_ms()
    rows = [listed(stored, now_ms) for stored in _run(data, work)]
    show_table("Watchlists", rows if as_json else [for_people(row) for row in rows], as_json=as_json)


@watchlist.command("diff")
@click.argument("source", type=click.Choice(list(SOURCES)))
@click.argument("old", required=False)
@click.argument("new", required=False)
@_tenant_option
@json_option
@data_option
def diff(
    source: str, old: str | None, new: str | None, tenant: str | None, as_json: bool, data: str | None
) -> None:
    """Show which entities were added, removed and changed: between the last two versions, or OLD and NEW.

    Example: vettance watchlist diff un_sc
    """
    from vettance.watchlists.list_store import difference, shelf_of, take

    async def work(store: Store, settings: Settings) -> Any:
        name, owner = await _owned(store, source, tenant)
        rows = [sql.version_of(row) for row in await store.read(sql.select_versions(owner))]
        kept = [row for row in rows if row.version.source == name]
        later = _pick(kept, new) if new else next((row.version for row in kept if row.current), None)
        others = [row.version for row in kept if later is not None and row.version.version != later.version]
        earlier = _pick(kept, old) if old else next(iter(others), None)
        if later is None or earlier is None:
            fail(f"{source} has not two versions to compare; `vettance watchlist list --all` shows them")
        shelf = shelf_of(settings.data, owner)
        found = difference(take(shelf, name, earlier.version), take(shelf, name, later.version))
        return earlier, later, found

    earlier, later, found = _run(data, work)
    result = {
        "source": source,
        "old": earlier.version,
        "new": later.version,
        "added": found.added,
        "removed": found.removed,
        "changed": found.changed,
    }
    lines = [f"{source}: {earlier.version} → {later.version}"]
    for label, entities in (("added", found.added), ("removed", found.removed), ("changed", found.changed)):
        lines.append(f"{len(entities)} {label}")
        lines.extend(f"  {identity}  {name}" for identity, name in entities.items())
    show(result, "\n".join(lines), as_json=as_json)


def _pick(kept: list[sql.StoredVersion], prefix: str) -> Version:
    found = [row.version for row in kept if row.version.version.startswith(prefix)]
    if len(found) != 1:
        fail(f"{prefix} names {len(found)} versions; `vettance watchlist list --all` shows them")
    return found[0]


@watchlist.command("evaluate")
@_files
@click.option(
    "--profile",
    type=click.Choice(list(Profile)),
    default=Profile.BALANCED,
    show_default=True,
    help="Whose review bound counts.",
)
@click.option("--bound", type=Whole(0, 100), help="A review bound to try instead of the profile's.")
@click.option("--search", is_flag=True, help="Search the imported lists instead of comparing each pair.")
@click.option("--misses", type=Whole(0), default=20, show_default=True, help="How many failed cases to show.")
@json_option
@data_option
def evaluate(
    paths: tuple[Path, ...],
    profile: str,
    bound: int | None,
    search: bool,
    misses: int,
    as_json: bool,
    data: str | None,
) -> None:
    """Run labelled cases and print precision, recall and F1 for each tag, and the misses.

    A case pairs a query with a listed entity. Cases without a candidate, and all with --search, run against
    the imported lists; with --search, a case whose candidate is on none of them is left out.

    Example: vettance watchlist evaluate cases.jsonl --search --profile CONSERVATIVE
    """
    from vettance.watchlists import labelled
    from vettance.watchlists.match_evaluation import Evaluation, report
    from vettance.watchlists.subject_screening import REVIEW_BOUNDS

    if not paths:
        fail("name the files of cases")
    index = _open_index(data)
    evaluation = Evaluation(
        index, bound if bound is not None else REVIEW_BOUNDS[Profile(profile)], search=search
    )
    try:
        for case in labelled.read_cases(paths):
            evaluation.run(case)
    except (SourceFault, KeyError, ValueError) as error:
        fail(f"a case cannot be read: {error}")
    if not (evaluation.total.cases or evaluation.skipped):
        fail(f"there is no case in {', '.join(str(path) for path in paths)}")
    if as_json:
        show(evaluation.result(misses), "", as_json=True)
    else:
        click.echo(report(evaluation, misses))


def _open_index(data: str | None) -> Index | None:
    from vettance.watchlists.index import Index, IndexFault
    from vettance.watchlists.list_store import ensure_index, index_path, shelf_of

    settings = settings_of(data)
    if not has_store(settings):
        return None  # Pairs can be compared without any list.

    async def work(store: Store, _settings: Settings) -> Any:
        return await store.read(sql.select_index())

    rows = _run(data, work)
    versions: dict[str, str] = msgspec.json.decode(rows[0][1], type=dict[str, str]) if rows else {}
    if not versions:
        return None
    shelf = shelf_of(settings.data)
    try:
        # The index that was built last may be that of an older version of this program.
        return Index(index_path(shelf, ensure_index(shelf, versions)))
    except (IndexFault, SourceFault, OSError) as error:
        fail(str(error))
