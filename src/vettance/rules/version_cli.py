"""The commands of a version's life: propose, approve, reject, activate, roll back, and the log of it."""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from vettance.commands import data_option, fail, json_option, run_for_tenant, show, show_table
from vettance.errors import NotFound, Refusal
from vettance.ids import IdSource
from vettance.option_types import Whole
from vettance.rules.gate import examine
from vettance.rules.remote_rules import RemoteRules, fault_of, local_only, tenant_or_server
from vettance.rules.rule import Fault, RuleSetRefused
from vettance.rules.rule_file import RuleFiles, admit_file, fault_out, file_argument, read_rules, refuse
from vettance.rules.version import RuleSetVersion, step_out, version_out
from vettance.rules.versioning import NewRules, Versioning, resolved
from vettance.wire.payload import JSON

if TYPE_CHECKING:
    from vettance.db.engine import Store
    from vettance.rules.sql import RuleSets

tenant_option = click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose rules.")
#: A version on the command line; both engines number them in 32 bits or more.
VERSION: Final = Whole(1, 2**31 - 1)
version_argument = click.argument("version", type=VERSION)
_NOTE_CHARS_MAX: Final = 4_000


def _read_actor(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Name who calls: what was given, or the user of this machine."""
    if value is None:
        try:
            return f"cli:{getpass.getuser()}"
        except (KeyError, OSError):
            return "cli"
    if not value.strip() or len(value) > 200 or not value.isprintable():
        raise click.BadParameter("a name has 1 to 200 printable characters")
    return f"cli:{value.strip()}"


def read_note(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Read a note of the command line; for `callback` of an option."""
    if value is not None and (len(value) > _NOTE_CHARS_MAX or "\x00" in value):
        raise click.BadParameter(f"a note has at most {_NOTE_CHARS_MAX:,} characters")
    return value


def _read_break_glass(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Read why a version needs no approval: nothing but the note says so afterwards."""
    if value is not None and not value.strip():
        raise click.BadParameter("must say why")
    return read_note(context, option, value)


note_option = click.option(
    "--note", default="", callback=read_note, help="What changed, for the list of versions."
)
by_option = click.option(
    "--by", "actor", callback=_read_actor, metavar="NAME", help="Who does it; else the user of this machine."
)

break_glass_option = click.option(
    "--break-glass", metavar="NOTE", callback=_read_break_glass, help="Without approval, and why."
)
over_option = click.option(
    "--over",
    type=Whole(0, 2**31 - 1),
    metavar="VERSION",
    help="Only while this version is in force; 0: while none is.",
)


@dataclass(frozen=True, slots=True)
class StoredRules(RuleFiles):
    """How the stored versions of one kind of rules are handled on the command line."""

    kept: RuleSets

    def step(self, version: int, name: str) -> str:
        """Return where a service takes a version one step further."""
        return f"{self.path}/rulesets/{version}/{name}"


def steps_of(
    sets: StoredRules,
    data: str | None,
    tenant_id: str,
    actor: str,
    work: Callable[[Versioning], Awaitable[Any]],
) -> Any:
    """Take a step with a tenant's rules; a refusal of it ends the command."""

    async def whole(store: Store) -> Any:
        versioning = Versioning(store, sets.kept, tenant_id, actor, IdSource())
        try:
            return await work(versioning)
        except NotFound:
            fail(f"there is no such version; `vettance {sets.group.name} list` shows them")
        except RuleSetRefused as refused:
            refuse("the version", refused.faults)
        except Refusal as refusal:
            fail(refusal.message, **refusal.details)

    return run_for_tenant(data, tenant_id, whole)


def add_version_commands(sets: StoredRules) -> None:
    """Add the commands of versions to the group."""
    for add in (_add_propose, _add_approve, _add_reject, _add_activate, _add_rollback, _add_log):
        add(sets)


def _shown(one: RuleSetVersion, said: str, *, as_json: bool, **more: Any) -> None:
    show(version_out(one) | more, said, as_json=as_json)


def _shown_answer(answer: JSON, document: str, draft: bool, *, as_json: bool) -> None:
    """Show what a service answers to a version that was saved."""
    if not as_json:
        for one in answer["faults"]:
            click.echo(f"{fault_of(one, document)}\n", err=True)
    show(answer, f"Version {answer['version']} is {'a draft' if draft else 'proposed'}.", as_json=as_json)


def _add_propose(sets: StoredRules) -> None:
    text = (
        f"Save FILE as a new version of a tenant's {sets.noun} for somebody to approve. "
        "It passes the gate first, and is not in force yet. With --draft it is saved as it is, "
        "and its faults are shown."
    )
    example = f'propose {sets.example} --tenant ten_0190… --note "{sets.note}"'

    @sets.group.command("propose", help=sets.help(text, example))
    @file_argument
    @tenant_or_server
    @note_option
    @click.option("--draft", is_flag=True, help="Save it as a draft, which may be broken.")
    @by_option
    @json_option
    @data_option
    def propose(
        file: Path,
        tenant_id: str,
        server: RemoteRules | None,
        note: str,
        draft: bool,
        actor: str,
        as_json: bool,
        data: str | None,
    ) -> None:
        if server is not None:
            local_only("actor")
            document = read_rules(file)
            body = {"document": document, "note": note, "propose": not draft}
            _shown_answer(server.post(f"{sets.path}/rulesets", body), document, draft, as_json=as_json)
            return
        faults: tuple[Fault, ...]
        if draft:
            found = examine(written := read_rules(file), sets.context(data))
            rules, faults = resolved(written, found), found.faults
        else:
            admitted = admit_file(file, sets.context(data))
            pushed = admitted.text if admitted.extends is not None else None
            rules, faults = NewRules(admitted.document, pushed), admitted.warnings
        one: RuleSetVersion = steps_of(
            sets,
            data,
            tenant_id,
            actor,
            lambda steps: steps.draft(rules, note) if draft else steps.propose_new(rules, note),
        )
        if draft and not as_json:
            for fault in faults:
                click.echo(f"{fault}\n", err=True)
        said = f"Version {one.version} is {'a draft' if draft else 'proposed'}."
        _shown(one, said, as_json=as_json, faults=[fault_out(fault) for fault in faults])


def _add_approve(sets: StoredRules) -> None:
    text = (
        "Approve a proposed VERSION. Where the tenant's rules need approval, its author cannot: "
        "another person or key must."
    )

    @sets.group.command("approve", help=sets.help(text, "approve 5 --tenant ten_0190… --by ana"))
    @version_argument
    @tenant_or_server
    @click.option("--note", default="", callback=read_note, help="Why, for the log.")
    @by_option
    @json_option
    @data_option
    def approve(
        version: int,
        tenant_id: str,
        server: RemoteRules | None,
        note: str,
        actor: str,
        as_json: bool,
        data: str | None,
    ) -> None:
        said = f"Version {version} is approved. `activate {version}` puts it into force."
        if server is not None:
            local_only("actor")
            show(server.post(sets.step(version, "approve"), {"note": note}), said, as_json=as_json)
            return
        one = steps_of(sets, data, tenant_id, actor, lambda steps: steps.approve(version, note))
        _shown(one, said, as_json=as_json)


def _add_reject(sets: StoredRules) -> None:
    text = "Reject a VERSION that is not in force, for good."

    @sets.group.command(
        "reject", help=sets.help(text, f'reject 5 --tenant ten_0190… --note "{sets.objection}"')
    )
    @version_argument
    @tenant_or_server
    @click.option("--note", required=True, callback=read_note, help="Why, for the log.")
    @by_option
    @json_option
    @data_option
    def reject(
        version: int,
        tenant_id: str,
        server: RemoteRules | None,
        note: str,
        actor: str,
        as_json: bool,
        data: str | None,
    ) -> None:
        said = f"Version {version} is rejected."
        if server is not None:
            local_only("actor")
            show(server.post(sets.step(version, "reject"), {"note": note}), said, as_json=as_json)
            return
        one = steps_of(sets, data, tenant_id, actor, lambda steps: steps.reject(version, note))
        _shown(one, said, as_json=as_json)


def _add_activate(sets: StoredRules) -> None:
    text = "Put VERSION into force; every running server follows within 5 seconds."

    @sets.group.command("activate", help=sets.help(text, "activate 5 --tenant ten_0190…"))
    @version_argument
    @tenant_or_server
    @over_option
    @break_glass_option
    @by_option
    @json_option
    @data_option
    def activate(
        version: int,
        tenant_id: str,
        server: RemoteRules | None,
        over: int | None,
        break_glass: str | None,
        actor: str,
        as_json: bool,
        data: str | None,
    ) -> None:
        said = f"Version {version} is in force."
        if server is not None:
            local_only("actor")
            body = _given(over=over, breakGlass=break_glass)
            show(server.post(sets.step(version, "activate"), body), said, as_json=as_json)
            return
        one = steps_of(
            *(sets, data, tenant_id, actor), lambda steps: steps.activate(version, break_glass, over=over)
        )
        _shown(one, said, as_json=as_json)


def _add_rollback(sets: StoredRules) -> None:
    text = (
        "Take the rules of the version before, or of --to, back into force as a new version. "
        "It was in force once, so nobody has to approve it."
    )

    @sets.group.command("rollback", help=sets.help(text, "rollback --tenant ten_0190…"))
    @tenant_or_server
    @click.option("--to", type=VERSION, help="Which version; the one that was in force before when left out.")
    @over_option
    @by_option
    @json_option
    @data_option
    def rollback(
        tenant_id: str,
        server: RemoteRules | None,
        to: int | None,
        over: int | None,
        actor: str,
        as_json: bool,
        data: str | None,
    ) -> None:
        if server is not None:
            local_only("actor")
            found = server.post(f"{sets.path}/rulesets/rollback", _given(to=to, over=over))
        else:
            one = steps_of(sets, data, tenant_id, actor, lambda steps: steps.roll_back(to, over))
            found = version_out(one)
        origin = found["rollbackOf"]
        said = f"Version {found['version']} is in force; its rules are those of version {origin}."
        show(found, said, as_json=as_json)


def _given(**members: int | str | None) -> dict[str, int | str]:
    """Return the members of a body that were given."""
    return {name: value for name, value in members.items() if value is not None}


def _add_log(sets: StoredRules) -> None:
    text = f"Show who did what with a tenant's {sets.noun}, newest first."

    @sets.group.command("log", help=sets.help(text, "log --tenant ten_0190…"))
    @tenant_or_server
    @json_option
    @data_option
    def log(tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None) -> None:
        if server is not None:
            rows = server.get(f"{sets.path}/rulesets/log")["data"]
        else:
            read = sets.kept.select_steps(tenant_id)
            rows = [step_out(row) for row in run_for_tenant(data, tenant_id, lambda store: store.read(read))]
        show_table("Steps", rows, as_json=as_json)
