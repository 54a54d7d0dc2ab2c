"""What the commands share: where the data is, whose it is, how a fault ends, how a result is shown."""

import asyncio
import getpass
import hashlib
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TypeVar

import click

from vettance.audit.act import Act, acting
from vettance.audit.audited_store import AuditedStore
from vettance.db.engine import EVERYBODY, Store, StoreDown
from vettance.ids import IdSource, is_id
from vettance.processes.background import give_way, go_to_background
from vettance.settings.settings import Settings, SettingsError, open_data_folder, read_settings
from vettance.tenants.sql import select_tenant, tenant_of
from vettance.tenants.tenant import Tenant
from vettance.wire.numbers import is_decimal
from vettance.wire.payload import encode, read_moment

Result = TypeVar("Result")

data_option = click.option(
    "--data",
    metavar="DIR",
    envvar="VETTANCE_DATA",
    help="The data folder (VETTANCE_DATA; default ./vettance-data).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer as one JSON object or array.")


class _Output(click.Option):
    """The option `--output`, known by its former name `--out` too, which help does not show."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the row of the help without the former name."""
        record = super().get_help_record(ctx)
        return record and (record[0].replace(", --out", ""), record[1])


def output_option(help_text: str, **how: Any) -> Callable[[Any], Any]:
    """Give a command the option that names what it writes to, by default a file."""
    how.setdefault("type", click.Path(path_type=Path, dir_okay=False))
    return click.option("--output", "--out", "out", cls=_Output, help=help_text, **how)


class CommandFailed(click.ClickException):
    """A command that ended with a fault."""

    def __init__(self, message: str, more: str, details: dict[str, Any]) -> None:
        super().__init__(message + more)
        #: What a script gets that asked for JSON.
        self.error = {"message": message, **details}


def fail(message: str, *, more: str = "", **details: Any) -> NoReturn:
    """End the command with a clear line on standard error and exit code 1.

    A person also reads `more`. A script that asked for JSON gets the message and the `details` as
    `{"error": …}` on standard output.
    """
    raise CommandFailed(message, more, details)


#: Noted in the context of a command that has printed an answer in JSON.
_ANSWERED: Final = "vettance.answered"


def say_fault_as_json(fault: click.ClickException) -> None:
    """Print a fault for a script that asked for JSON, unless it has an answer already."""
    context = click.get_current_context(silent=True)
    if context is None or _ANSWERED not in context.meta:
        error = fault.error if isinstance(fault, CommandFailed) else {"message": fault.message}
        with suppress(OSError):  # Nobody reads, or the disk is full: the fault itself may be that.
            click.echo(encode({"error": error}).decode())


def _show_json(answer: object) -> None:
    click.echo(encode(answer).decode())
    if (context := click.get_current_context(silent=True)) is not None:
        context.meta[_ANSWERED] = True


def counted(count: int, noun: str) -> str:
    """Write how many there are: `1 fault`, `3 faults`, `no faults`."""
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def settings_of(data: str | None, *, make: bool = False) -> Settings:
    """Read the settings, or end the command. With `make`, the data folder is made where there is none.

    With a database it is always made: what it holds there is found or made again.
    """
    try:
        settings = read_settings(data=data)
        if make or settings.database_url is not None:
            open_data_folder(settings)
    except SettingsError as error:
        fail(str(error))
    return settings


def has_store(settings: Settings) -> bool:
    """Tell whether there is a store to ask; a database is taken for one until it is asked."""
    from vettance.deployment.connect import stores_of

    return stores_of(settings).exists()


@asynccontextmanager
async def open_store(data: str | None, *, make: bool = False) -> AsyncIterator[tuple[AuditedStore, Settings]]:
    """Open the store of the data folder, brought to the newest schema; a fault ends the command.

    Only with `make` is a store made where there is none: a folder's name that was mistyped must not answer
    that there are no tenants.
    """
    from vettance.deployment.connect import (
        connect_store,  # Every engine: too much for a command that asks no store.
    )

    settings = settings_of(data, make=make)
    if not make and not has_store(settings):
        fail(
            f"there is no store in {settings.data}; name its folder with --data or VETTANCE_DATA, "
            "or make it with `vettance tenant create`"
        )
    try:
        store = await connect_store(settings, writer="thread")
        try:
            await store.migrate()
            with acting(_act()):
                yield AuditedStore(store, IdSource()), settings
        finally:
            await store.close()
    except StoreDown as error:
        fail(error.full or "the store cannot be reached")
    except SettingsError as error:
        fail(str(error))


#: Parameters that say how a command answers, or where the store is.
_NOT_LOGGED: Final = frozenset({"data", "as_json", "yes"})
#: Commands whose arguments are the very names that they remove.
_NAMELESS: Final = frozenset({"customer erase"})
#: Commands that are recorded in the chain of the deployment, as they remove that of the tenant.
_OF_THE_DEPLOYMENT: Final = frozenset({"tenant delete"})


def _act() -> Act | None:
    """Say what this command is about to change, for the audit log."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, context.info_name or "")
        context = context.parent
    action, context = " ".join(words), click.get_current_context()
    given = {
        # What is neither text nor number says itself how it is shown: a URL without its password.
        name: value if isinstance(value, str | int | float) or type(value) is tuple else str(value)
        for name, value in context.params.items()
        if name not in _NOT_LOGGED and value not in (None, (), False)
    }
    after = given if action not in _NAMELESS else None
    subject = next((str(given[name]) for name in _SUBJECTS if name in given), "") if after else ""
    tenant = EVERYBODY if action in _OF_THE_DEPLOYMENT else _named_tenant(context.params)
    return Act(_person(), action, tenant=tenant, subject=subject, after=after)


#: The parameters that name what a command is about, in this order.
_SUBJECTS: Final = ("key_id", "email", "delivery_id", "subscription_id", "tenant_id", "name")


def _named_tenant(given: dict[str, Any]) -> str:
    """Return the tenant that a command names, if it names one."""
    named = given.get("tenant_id") or given.get("tenant")
    return named if isinstance(named, str) and is_id(named, "ten") else ""


def _person() -> str:
    """Name who runs the command: their account on this machine."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"cli:{os.getuid()}"


async def find_tenant(store: Store, tenant_id: str) -> Tenant:
    """Return a tenant by its id, or end the command with a clear line."""
    rows = await store.read(select_tenant(tenant_id))
    if not rows:
        fail(f"there is no tenant {tenant_id}; `vettance tenant list` shows them")
    return tenant_of(rows[0])


def run_with_store(
    data: str | None, work: Callable[[Store, Settings], Coroutine[Any, Any, Result]], *, make: bool = False
) -> Result:
    """Run `work` with an open store; every fault ends as one line on standard error."""

    async def whole() -> Result:
        async with open_store(data, make=make) as (store, settings):
            return await work(store, settings)

    return asyncio.run(whole())


def run_for_tenant(
    data: str | None, tenant_id: str, work: Callable[[Store], Coroutine[Any, Any, Result]]
) -> Result:
    """The same for a tenant, if there is such a one."""

    async def whole(store: Store, _settings: Settings) -> Result:
        await find_tenant(store, tenant_id)
        return await work(store)

    return run_with_store(data, whole)


def show(result: dict[str, Any] | list[dict[str, Any]], text: str, *, as_json: bool) -> None:
    """Print a result: for a script as JSON, for a person as text."""
    if as_json:
        _show_json(result)
    else:
        click.echo(text)


def file_digest(path: Path) -> str:
    """Name the content of a file (SHA-256, hex)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is there whole when the block ends well, and else as it was before.

    A device or a pipe is written to as it is. Raises `OSError` that names the path.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    draft = target.with_name(f"{target.name}.{os.getpid()}.draft")
    try:
        file = draft.open("wb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with file:
            if target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


#: The option of every command that writes a file of its caller's choice.
force_option: Final = click.option("--force", is_flag=True, help="Overwrite a file that is there.")


def keep_existing(path: Path | None, *, force: bool) -> None:
    """Refuse to overwrite a file, unless that is asked for; devices and pipes keep nothing."""
    if path is not None and path.is_file() and not force:
        fail(f"{path} is there already; --force overwrites it")


def write_document(document: str, told: dict[str, Any], output: Path | None, *, as_json: bool) -> None:
    """Write a document into a file or to standard output; as JSON, with what is `told` of it."""
    if output is not None:
        with whole_file(output) as file:
            file.write(document.encode())
        told = told | {"output": str(output)}
    elif as_json:
        told = told | {"document": document}
    else:
        click.echo(document, nl=False)
    if as_json:
        _show_json(told)


def counted_word(count: int, word: str) -> str:
    """Write a count with its noun: "1 fault", "2,000 faults"."""
    many = f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"
    return f"{count:,} {word if count == 1 else many}"


def show_table(title: str, rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    """Print rows: for a script as a JSON array, for a person as a table."""
    if as_json:
        _show_json(rows)
        return
    if not rows:
        click.echo(f"{title}: none yet.")
        return
    cells = [[_cell(value) for value in row.values()] for row in rows]
    table = [list(rows[0]), *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    # Ids are copied from here, so nothing is ever cut or framed.
    click.echo(f"{title}\n")
    for line in table:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def _cell(value: Any) -> str:
    """Write a value for people: numbers to four digits, lists by their items, and nothing for no."""
    match value:
        case None | False:
            return ""
        case True:
            return "yes"
        case float():
            return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
        case list() | tuple():
            return ", ".join(map(_cell, value))
        case _:
            return str(value)


def read_time(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Read the moment that an option names, in Unix milliseconds; for `callback` of the option."""
    if value is None:
        return None
    moment = read_moment(float(value) if is_decimal(value) else value)
    if moment is None:
        raise click.BadParameter("must be an ISO 8601 time or Unix seconds")
    return moment


def _read_bound(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Read one end of a part of time. Whichever end is read last is held to the other."""
    moment = read_time(context, option, value)
    ends = {**context.params, option.name: moment}
    from_ms, to_ms = ends.get("from_ms"), ends.get("to_ms")
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise click.BadParameter("must not be later than --to", param_hint="--from")
    return moment


def _time_option(name: str, help_text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", f"{name}_ms", callback=_read_bound, metavar="TIME", help=help_text)


#: The options of every command over a part of time.
from_option: Final = _time_option("from", "The first event time, inclusive: ISO 8601 or Unix seconds.")
to_option: Final = _time_option("to", "The last event time, exclusive: ISO 8601 or Unix seconds.")


def confirm(said: str, *, as_json: bool, more: str = "", **details: Any) -> None:
    """Ask the user at the terminal to agree to what cannot be undone; a script must have said so before."""
    if as_json or not sys.stdin.isatty():
        fail(f"{said}; add --yes if that is meant", more=more, **details)
    if not click.confirm(f"{said[0].upper()}{said[1:]}. Go on?", err=True):
        fail("nothing was changed")


@contextmanager
def progress(what: str, total: int | None, *, only_reads: bool = False) -> Iterator[Any]:
    """Show a bar on standard error while it is a terminal; yields what to call with each number of rows.

    What takes so long gives way to a server; what only reads takes no more than the processor that is left.
    """
    (go_to_background if only_reads else give_way)()
    if not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
