"""The commands of rule sets, which are kept in versions: push, pull, list and compare them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from vettance import clock
from vettance.commands import (
    data_option,
    fail,
    json_option,
    run_for_tenant,
    show,
    show_table,
    write_document,
)
from vettance.db.engine import Clash, Store
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import RuleSetRefused, diff, read_ruleset
from vettance.rules.sql import RuleSets
from vettance.tenants.sql import note_change
from vettance.wire import timestamp

tenant_option = click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose rules.")
file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))

#: A version on the command line; both engines number them in 32 bits or more.
_VERSION = click.IntRange(1, 2**31 - 1)


def read_rules(file: Path) -> str:
    """Return the text of a file of rules, or end the command."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read as UTF-8 text: {error}")


@dataclass(frozen=True, slots=True)
class Versions:
    """How the rule sets of one kind are handled on the command line."""

    group: click.Group
    kept: RuleSets
    #: What they are called in a sentence.
    noun: str
    #: The file that the examples name.
    example: str
    #: Passes a document (its text, its name, the data folder) through the gate; any fault ends the command.
    gate: Callable[[str, str, str | None], object]
    #: The pack that is in force for a tenant without rules of its own; None where every tenant has some.
    pack: str | None = None

    def add_commands(self) -> None:
        """Add `push`, `pull`, `list` and `diff` to the group."""
        for add in (self._add_push, self._add_pull, self._add_list, self._add_diff):
            add()

    def _help(self, text: str, example: str) -> str:
        return f"{text}\n\nExample: vettance {self.group.name} {example}"

    def _add_push(self) -> None:
        text = f"Save FILE as a tenant's new {self.noun}; a running server follows within seconds."
        example = f'push {self.example} --tenant ten_0190… --note "Lower the login limit"'

        @self.group.command("push", help=self._help(text, example))
        @file_argument
        @tenant_option
        @click.option("--note", default="", help="What changed, for the list of versions.")
        @json_option
        @data_option
        def push(file: Path, tenant_id: str, note: str, as_json: bool, data: str | None) -> None:
            document = read_rules(file)
            self.gate(document, str(file), data)

            async def work(store: Store) -> int:
                newest = await store.read(self.kept.select_newest(tenant_id))
                version: int = newest[0][0] + 1 if newest else 1
                now_ms = clock.now_ms()
                try:
                    await store.write(
                        self.kept.insert(tenant_id, version, document, note, now_ms),
                        note_change(self.kept.area, tenant_id, str(version), now_ms),
                    )
                except Clash:
                    fail("somebody else pushed a version at the same moment; pull, compare, and push again")
                return version

            version = run_for_tenant(data, tenant_id, work)
            found = {"tenantId": tenant_id, "version": version}
            show(found, f"Version {version} is in force.", as_json=as_json)

    def _add_pull(self) -> None:
        text = f"Write the {self.noun} in force of a tenant, or an earlier version, as it was pushed."
        if self.pack is not None:
            text += "\n\nA tenant without any has the default pack, and with --json a version of null."

        @self.group.command("pull", help=self._help(text, f"pull --tenant ten_0190… --output {self.example}"))
        @tenant_option
        @click.option("--version", type=_VERSION, help="Which version; the one in force when left out.")
        @click.option(
            "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else standard output."
        )
        @json_option
        @data_option
        def pull(
            tenant_id: str, version: int | None, output: Path | None, as_json: bool, data: str | None
        ) -> None:
            found, document = run_for_tenant(
                data, tenant_id, lambda store: self._stored(store, tenant_id, version)
            )
            write_document(document, {"tenantId": tenant_id, "version": found}, output, as_json=as_json)

    def _add_list(self) -> None:
        text = f"List the versions of a tenant's {self.noun}, newest first; the first is in force."

        @self.group.command("list", help=self._help(text, "list --tenant ten_0190…"))
        @tenant_option
        @json_option
        @data_option
        def list_versions(tenant_id: str, as_json: bool, data: str | None) -> None:
            found = run_for_tenant(
                data, tenant_id, lambda store: store.read(self.kept.select_versions(tenant_id))
            )
            rows = [
                {"version": row[0], "digest": row[1][:12], "note": row[2], "createdAt": timestamp(row[3])}
                for row in found
            ]
            show_table("Versions", rows, as_json=as_json)

    def _add_diff(self) -> None:
        text = f"Show what FILE (or version --to) changes against a tenant's {self.noun}."

        @self.group.command("diff", help=self._help(text, f"diff {self.example} --tenant ten_0190…"))
        @click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
        @tenant_option
        @click.option("--version", type=_VERSION, help="Compare with this version, not the one in force.")
        @click.option(
            "--to", "to_version", type=_VERSION, help="Compare two stored versions, without a file."
        )
        @json_option
        @data_option
        def compare(
            file: Path | None,
            tenant_id: str,
            version: int | None,
            to_version: int | None,
            as_json: bool,
            data: str | None,
        ) -> None:
            if (file is None) == (to_version is None):
                fail("name a FILE or --to, and not both")

            async def work(store: Store) -> tuple[str, str]:
                _, old = await self._stored(store, tenant_id, version)
                if file is not None:
                    return old, read_rules(file)
                return old, (await self._stored(store, tenant_id, to_version))[1]

            old, new = run_for_tenant(data, tenant_id, work)
            try:
                changes = diff(read_ruleset(old), read_ruleset(new))
            except RuleSetRefused as refused:
                fail(f"{file or 'A stored version'} is refused.\n{refused}")
            show_table("Changes", [change._asdict() for change in changes], as_json=as_json)

    async def _stored(self, store: Store, tenant_id: str, version: int | None) -> tuple[int | None, str]:
        """Return a version of a tenant's rules, those in force without a number: (its number, its text)."""
        if version is None:
            found = [(row[0], row[1]) for row in await store.read(self.kept.select_newest(tenant_id))]
            if not found and self.pack is not None:
                return None, load_pack_text(self.pack)
        else:
            rows = await store.read(self.kept.select_version(tenant_id, version))
            found = [(version, row[0]) for row in rows]
        if not found:
            fail(f"there is no such version; `vettance {self.group.name} list` shows them")
        return found[0]
