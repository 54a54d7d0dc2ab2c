"""The commands of rule sets, which are kept in versions: push, pull, list and compare them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from vettance.commands import (
    confirm,
    counted,
    data_option,
    fail,
    json_option,
    run_for_tenant,
    show,
    show_table,
    write_document,
)
from vettance.db.engine import Store
from vettance.rules.difference import RuleChange, change_lines, count_changes, diff
from vettance.rules.gate import read_extended
from vettance.rules.packs import default_pack, load_pack_text
from vettance.rules.remote_rules import RemoteRules, fault_of, local_only, tenant_or_server
from vettance.rules.rule import RuleSet
from vettance.rules.rule_file import admit_file, fault_out, file_argument, read_rules, refuse, warn
from vettance.rules.ruleset import RuleSetRefused, read_ruleset
from vettance.rules.version import RuleSetVersion, VersionState, version_of, version_out
from vettance.rules.version_cli import (
    VERSION,
    StoredRules,
    add_version_commands,
    break_glass_option,
    by_option,
    note_option,
    steps_of,
)
from vettance.rules.versioning import NewRules
from vettance.wire.payload import JSON

if TYPE_CHECKING:
    from vettance.rules.rule_file import CheckedRuleFile

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}


class StoredRuleSet(NamedTuple):
    """A version of a tenant's rules: its number (None for a pack that nobody pushed) and its texts."""

    version: int | None
    document: str
    pushed: str | None

    @property
    def text(self) -> str:
        """The text as it was pushed."""
        return self.document if self.pushed is None else self.pushed

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return "the default pack" if self.version is None else f"version {self.version}"


@dataclass(frozen=True, slots=True)
class Versions(StoredRules):
    """How the rule sets of one kind are handled on the command line."""

    #: Whether a tenant that never pushed any has the pack in force; else every tenant has a first version.
    implied: bool

    def add_commands(self) -> None:
        """Add all commands to the group."""
        self.add_file_commands()
        for add in (self._add_push, self._add_pull, self._add_list, self._add_diff):
            add()
        add_version_commands(self)

    def _add_push(self) -> None:
        text = (
            f"Save FILE as a tenant's new {self.noun}; a running server follows within seconds. "
            "What changes is shown. Removing rules asks first, or needs --yes where nobody can be asked."
        )
        example = f'push {self.example} --tenant ten_0190… --note "{self.note}"'

        @self.group.command("push", help=self.help(text, example))
        @file_argument
        @tenant_or_server
        @note_option
        @break_glass_option
        @by_option
        @click.option("--dry-run", is_flag=True, help="Show what would change, and save nothing.")
        @click.option("--yes", "-y", is_flag=True, help="Remove rules without asking.")
        @json_option
        @data_option
        def push(
            file: Path,
            tenant_id: str,
            server: RemoteRules | None,
            note: str,
            break_glass: str | None,
            actor: str,
            dry_run: bool,
            yes: bool,
            as_json: bool,
            data: str | None,
        ) -> None:
            if server is not None:
                local_only("actor")
                self._push_to(server, file, note, break_glass, dry_run=dry_run, yes=yes, as_json=as_json)
                return
            admitted = admit_file(file, self.context(data))
            before = run_for_tenant(data, tenant_id, lambda store: self._find(store, tenant_id))
            changes = diff(_readable(before), admitted.ruleset) if before is not None else []
            same = before is not None and (before.document, before.text) == (admitted.document, admitted.text)
            found: JSON = {
                "tenantId": tenant_id,
                "version": before.version if before is not None else None,
                "saved": False,
                "extends": admitted.extends,
                "changes": [change_out(change) for change in changes],
                "warnings": [fault_out(fault) for fault in admitted.warnings],
            }
            if same and before is not None:
                _show_same(found, before, as_json=as_json)
                return
            if not as_json and before is not None:
                click.echo(shown_changes(changes, before, admitted.ruleset))
            if dry_run:
                show(found, "Nothing was saved (--dry-run).", as_json=as_json)
                return
            if not yes:
                _confirm_removal(changes, as_json=as_json)
            saved = self._save(data, tenant_id, before, admitted, note, actor, break_glass)
            _show_saved(found, before, version_out(saved), as_json=as_json)

    def _save(
        self,
        data: str | None,
        tenant_id: str,
        before: StoredRuleSet | None,
        admitted: CheckedRuleFile,
        note: str,
        actor: str,
        break_glass: str | None,
    ) -> RuleSetVersion:
        """Store what passed the gate as the version after the one it was compared with."""
        rules = NewRules(admitted.document, admitted.text if admitted.extends is not None else None)
        over = before.version if before is not None else None
        saved: RuleSetVersion = steps_of(
            self,
            data,
            tenant_id,
            actor,
            lambda steps: steps.push(rules, note, over=over, break_glass=break_glass),
        )
        return saved

    def _add_pull(self) -> None:
        text = (
            f"Write the {self.noun} in force of a tenant, or an earlier version, as it was pushed. "
            "With --resolved, what it came to on the pack that it builds on."
        )
        if self.implied:
            text += "\n\nA tenant without any has the default pack, and with --json a version of null."

        @self.group.command("pull", help=self.help(text, f"pull --tenant ten_0190… --output {self.example}"))
        @tenant_or_server
        @click.option("--version", type=VERSION, help="Which version; the one in force when left out.")
        @click.option("--resolved", is_flag=True, help="The whole rule set, with the rules of its pack.")
        @click.option(
            "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else standard output."
        )
        @json_option
        @data_option
        def pull(
            tenant_id: str,
            server: RemoteRules | None,
            version: int | None,
            resolved: bool,
            output: Path | None,
            as_json: bool,
            data: str | None,
        ) -> None:
            found = self._version(server, data, tenant_id, version)
            document = found.document if resolved else found.text
            told = {"tenantId": tenant_id or None, "version": found.version}
            write_document(document, told, output, as_json=as_json)

    def _add_list(self) -> None:
        text = f"List the versions of a tenant's {self.noun}, newest first; one of them is active."

        @self.group.command("list", help=self.help(text, "list --tenant ten_0190…"))
        @tenant_or_server
        @json_option
        @data_option
        def list_versions(
            tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None
        ) -> None:
            if server is not None:
                versions = server.every(f"{self.path}/rulesets")
            else:
                read = self.kept.select_versions(tenant_id)
                found = run_for_tenant(data, tenant_id, lambda store: store.read(read))
                versions = [version_out(version_of(row)) for row in found]
            shown = ("version", "state", "note", "author", "approvedBy", "createdAt")
            rows = [{name: one[name] for name in shown} for one in versions]
            show_table("Versions", versions if as_json else rows, as_json=as_json)

    def _add_diff(self) -> None:
        text = f"Show what FILE (or version --to) changes against a tenant's {self.noun}."

        @self.group.command("diff", help=self.help(text, f"diff {self.example} --tenant ten_0190…"))
        @click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
        @tenant_or_server
        @click.option("--version", type=VERSION, help="Compare with this version, not the one in force.")
        @click.option("--to", "to_version", type=VERSION, help="Compare two stored versions, without a file.")
        @json_option
        @data_option
        def compare(
            file: Path | None,
            tenant_id: str,
            server: RemoteRules | None,
            version: int | None,
            to_version: int | None,
            as_json: bool,
            data: str | None,
        ) -> None:
            if (file is None) == (to_version is None):
                raise click.UsageError("name a FILE or --to, and not both")

            old = self._version(server, data, tenant_id, version)
            new = self._version(server, data, tenant_id, to_version) if to_version is not None else None
            try:
                if new is not None:
                    ruleset = read_ruleset(new.document)
                else:
                    assert file is not None
                    ruleset = read_extended(read_rules(file), default_pack(self.pack))
                changes = diff(read_ruleset(old.document), ruleset)
            except RuleSetRefused as refused:
                refuse(file or "a stored version", refused.faults)
            show(
                [change_out(change) for change in changes],
                shown_changes(changes, old, ruleset),
                as_json=as_json,
            )

    def _push_to(
        self,
        server: RemoteRules,
        file: Path,
        note: str,
        break_glass: str | None,
        *,
        dry_run: bool,
        yes: bool,
        as_json: bool,
    ) -> None:
        """Have a service save FILE as the version after the one it is compared with."""
        before = self._remote_version(server, None)
        document = read_rules(file)
        checked = server.post(f"{self.path}/rulesets/check", {"document": document})
        faults = [fault_of(one, document) for one in checked["faults"]]
        if not checked["ok"]:
            refuse(file, faults)
        try:
            ruleset = read_extended(document, default_pack(self.pack))
        except RuleSetRefused as refused:
            refuse(file, refused.faults)
        changes = diff(_readable(before), ruleset)
        found = {"version": before.version, "saved": False, "changes": [change_out(one) for one in changes]}
        found["warnings"] = [fault_out(fault) for fault in faults]
        if before.text == document:
            _show_same(found, before, as_json=as_json)
            return
        if not as_json:
            warn(faults)
            click.echo(shown_changes(changes, before, ruleset))
        if dry_run:
            show(found, "Nothing was saved (--dry-run).", as_json=as_json)
            return
        if not yes:
            _confirm_removal(changes, as_json=as_json)
        body = {"document": document, "note": note, "activate": True, "over": before.version or 0}
        if break_glass is not None:
            body["breakGlass"] = break_glass
        _show_saved(found, before, server.post(f"{self.path}/rulesets", body), as_json=as_json)

    def _version(
        self, server: RemoteRules | None, data: str | None, tenant_id: str, version: int | None
    ) -> StoredRuleSet:
        """Return a version of the rules from the service or the store, those in force without a number."""
        if server is not None:
            return self._remote_version(server, version)
        return run_for_tenant(data, tenant_id, lambda store: self._stored(store, tenant_id, version))

    def _remote_version(self, server: RemoteRules, version: int | None) -> StoredRuleSet:
        found = server.get(f"{self.path}/rulesets/{'active' if version is None else version}")
        return StoredRuleSet(found["version"] or None, found["resolved"], found["document"])

    async def _find(self, store: Store, tenant_id: str, version: int | None = None) -> StoredRuleSet | None:
        """Return a version of a tenant's rules, those in force without a number."""
        rows = await store.read(self.kept.select_pushed(tenant_id, version))
        if rows:
            return StoredRuleSet(*rows[0])
        return (
            StoredRuleSet(None, load_pack_text(self.pack), None) if self.implied and version is None else None
        )

    async def _stored(self, store: Store, tenant_id: str, version: int | None) -> StoredRuleSet:
        found = await self._find(store, tenant_id, version)
        if found is None:
            fail(f"there is no such version; `vettance {self.group.name} list` shows them")
        return found


def _readable(before: StoredRuleSet) -> RuleSet:
    """Return the rules of a version, none where this version of the service cannot read it.

    A tenant whose newest rules are refused must be able to push better ones.
    """
    try:
        return read_ruleset(before.document)
    except RuleSetRefused:
        return RuleSet(name="")


def _show_same(found: JSON, before: StoredRuleSet, *, as_json: bool) -> None:
    """Say that a push had nothing to save: what it would save is in force."""
    found |= {"state": VersionState.ACTIVE.value, "inForce": True}
    show(found, f"Nothing to save: {before.name} is the same.", as_json=as_json)


def _show_saved(found: JSON, before: StoredRuleSet | None, saved: JSON, *, as_json: bool) -> None:
    """Say what became of a push; one that waits for an approval has changed nothing that decides."""
    version, state = saved["version"], saved["state"]
    is_active = state == VersionState.ACTIVE
    if is_active:
        said = f"Version {version} is in force."
    else:
        decides = before.name if before is not None else "nothing"
        needed = (
            f"`activate {version}` puts it into force"
            if state == VersionState.APPROVED
            else f"another person or key has to approve it, then `activate {version}` puts it into force"
        )
        said = f"Version {version} is {state} and NOT in force yet: {decides} still decides; {needed}."
    show(found | saved | {"saved": True, "inForce": is_active}, said, as_json=as_json)


def _confirm_removal(changes: list[RuleChange], *, as_json: bool) -> None:
    """Have the user at the terminal agree to the loss of rules; a script must have said so before."""
    removed = count_changes(changes)["removed"]
    if not removed:
        return
    confirm(
        f"this removes {counted(removed, 'rule')}",
        as_json=as_json,
        more=", or keep the pack's rules by `extends: default` in the file",
        changes=[change_out(change) for change in changes],
    )


def change_out(change: RuleChange) -> JSON:
    """Return a difference as scripts read it."""
    return {
        "kind": change.kind,
        "rule": change.rule,
        "fields": list(change.fields),
        "before": dict(change.before) or None,
        "after": dict(change.after) or None,
    }


def shown_changes(changes: list[RuleChange], old: StoredRuleSet, new: RuleSet) -> str:
    """Write what is different for people, with a line that counts it."""
    if not changes:
        return f"No rule is different from {old.name}."
    count = count_changes(changes)
    kept = len(new.rules) - count["added"] - count["changed"]
    lines = [f"  {click.style(line, fg=_COLOURS.get(line[:1]))}" for line in change_lines(changes)]
    summary = ", ".join(f"{number} {kind}" for kind, number in count.items())
    return "\n".join([f"Against {old.name}:", *lines, f"Rules: {summary}, {kept} as before."])
