"""The command line: a table of commands, each loaded only when it is called, so that --help stays fast."""

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from vettance import __version__

#: Command → where it is defined (`module:attribute`) and what it does, in one line.
COMMANDS = {
    "serve": ("vettance.server.cli:serve", "Run the service."),
    "demo": (
        "vettance.demo:demo",
        "Stream labelled traffic through a service of its own and show what it caught.",
    ),
    "tenant": ("vettance.ops.tenant_cli:tenant", "Make, change, list and delete tenants."),
    "key": ("vettance.ops.tenant_cli:key", "Make, revoke, rotate and list API keys."),
    "user": ("vettance.people.cli:user", "Make, change and list the users of the console."),
    "audit": ("vettance.ops.audit_cli:audit", "Check and export the log of who changed what."),
    "rules": ("vettance.suggestions.cli:rules", "Check, test, push and pull rule sets."),
    "model": ("vettance.learning.cli:model", "Train, look at and steer the models of a tenant."),
    "decisions": ("vettance.history.decisions_cli:decisions", "Compute stored decisions again."),
    "websdk": ("vettance.websdk.cli:websdk", "Change the key that signs the tokens of browsers."),
    "watchlist": ("vettance.watchlists.cli:watchlist", "Import, refresh and evaluate watchlists."),
    "screen": ("vettance.exchange.screening.cli:screen_file", "Screen everybody in a file."),
    "aml": ("vettance.backtests.cli:aml", "Set how AML officers work; check, push and pull AML rules."),
    "generate": ("vettance.generate.cli:generate", "Make labelled traffic to try the service with."),
    "webhooks": ("vettance.webhooks.cli:webhooks", "Listen to webhooks on this machine, verify signatures."),
    "export": ("vettance.exchange.cli:export", "Write events or decisions to a file."),
    "import": ("vettance.exchange.cli:import_", "Take labelled events of the past from a file."),
    "consume": ("vettance.streams.cli:consume", "Take events from NATS, RabbitMQ or Kafka."),
    "retention": ("vettance.retention.cli:retention", "Remove data whose time is over."),
    "customer": ("vettance.retention.cli:customer", "Erase a customer's names."),
    "doctor": ("vettance.ops.cli:doctor", "Look for faults and say the mend for each."),
    "backup": ("vettance.ops.cli:backup", "Copy store and watchlists into a folder, while running."),
    "restore": ("vettance.ops.cli:restore", "Verify a backup and put it into a new data folder."),
    "copy": ("vettance.ops.store_cli:copy", "Copy the embedded store into a PostgreSQL database."),
    "migrate": (
        "vettance.ops.store_cli:migrate",
        "Bring the store to the newest schema, or tell what is pending.",
    ),
}


_AS_JSON: Final = "vettance.as_json"


class _WrongArguments(click.ClickException):
    exit_code = 2  # As click's own errors of usage have it.


@contextmanager
def _faults_in_one_line() -> Iterator[None]:
    """Say in one line what is wrong with the arguments, where click would say it in four, or with a file."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        hint = f"; see '{error.ctx.command_path} --help'" if error.ctx is not None else "."
        raise _WrongArguments(message + hint) from None
    except BrokenPipeError:
        raise  # Whoever read has read enough; click ends the command in silence.
    except OSError as error:
        raise click.ClickException(_told(error)) from None


@contextmanager
def _told_faults(*, as_json: bool) -> Iterator[None]:
    """Say faults in one line, and to a script that asked for JSON in JSON as well."""
    try:
        with _faults_in_one_line():
            yield
    except click.ClickException as fault:
        if as_json:
            from vettance.commands import say_fault_as_json  # No help needs it.

            say_fault_as_json(fault)
        raise


def _refuse_other_bytes(words: Sequence[str]) -> None:
    """Refuse what can neither be stored nor printed: the shell passes on any bytes."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(word).decode(errors="backslashreplace")
            raise click.UsageError(f"'{shown}' is not UTF-8; type or name it in UTF-8") from None


def _told(error: OSError) -> str:
    """Say what the system refused, and of which file."""
    said = error.strerror or str(error) or type(error).__name__
    return said if error.filename is None else f"{error.filename}: {said}"


class Commands(click.Group):
    """A group that knows its commands by name and imports them late."""

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **options: Any
    ) -> click.Context:
        """Read the options before the command."""
        # Asked of the words, as a command whose options are wrong never knows which it was given.
        as_json = "--json" in args[: args.index("--") if "--" in args else None]
        with _told_faults(as_json=as_json):
            _refuse_other_bytes(args)
            context = super().make_context(info_name, args, *rest, **options)
            context.meta[_AS_JSON] = as_json
            return context

    def invoke(self, ctx: click.Context) -> Any:
        """Read the command with its options, and run it."""
        # What is written is tenants' data: its owner's alone from the moment that it is there, whatever the
        # shell allows, and so is what other processes write for us and what SQLite puts beside its file.
        os.umask(0o077)
        with _told_faults(as_json=ctx.meta[_AS_JSON]):
            return super().invoke(ctx)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of a name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=Commands, epilog='Example: vettance tenant create "Corner Shop" --data ./vettance-data')
@click.version_option(__version__, prog_name="vettance")
def main() -> None:
    """Vettance decides product events: fraud or not, in milliseconds, explained."""


if __name__ == "__main__":
    main()
