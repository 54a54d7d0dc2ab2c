"""The commands of snoozes."""

from __future__ import annotations

from urllib.parse import quote

import click

from vettance import clock
from vettance.commands import data_option, fail, json_option, read_time, run_for_tenant, show, show_table
from vettance.db.engine import Lost, Store
from vettance.errors import Refusal
from vettance.ids import IdSource
from vettance.rules.packs import load_pack_text
from vettance.rules.remote_rules import RemoteRules, local_only, tenant_or_server
from vettance.rules.ruleset import read_ruleset
from vettance.rules.sql import RuleSets
from vettance.rules.version_cli import by_option
from vettance.snoozes import sql
from vettance.snoozes.snooze import PREFIX, Snooze, SnoozeType, read_snooze
from vettance.tenants.sql import note_change
from vettance.wire.payload import JSON, timestamp


def add_snooze_commands(group: click.Group, sets: RuleSets) -> None:
    """Add the commands to a group: `snooze`, `unsnooze` and `snoozes`."""
    _add_snooze(group, sets)
    _add_unsnooze(group, sets)
    _add_list(group, sets)


def _add_snooze(group: click.Group, sets: RuleSets) -> None:
    text = (
        "Have RULE do nothing for a customer, device or address until a moment. It is recorded as matched "
        "all the same. A running service follows within five seconds."
    )
    example = (
        f"vettance {group.name} snooze RULE --tenant ten_0190… --type DEVICE --value fp-77 --until 2027-01-31"
    )

    @group.command("snooze", help=f"{text}\n\nExample: {example}")
    @click.argument("rule", metavar="RULE")
    @tenant_or_server
    @click.option(
        "--type",
        "kind",
        required=True,
        type=click.Choice([one.value for one in SnoozeType], case_sensitive=False),
        help="What the value is.",
    )
    @click.option("--value", required=True, help="The customer, device, address or session.")
    @click.option("--until", "until_ms", required=True, callback=read_time, help="A date or a time.")
    @click.option("--reason", default="", help="Why, for those who look at it later.")
    @by_option
    @json_option
    @data_option
    def snooze(
        rule: str,
        tenant_id: str,
        server: RemoteRules | None,
        kind: str,
        value: str,
        until_ms: int,
        reason: str,
        actor: str,
        as_json: bool,
        data: str | None,
    ) -> None:
        body = {"ruleId": rule, "type": kind, "value": value, "until": until_ms / 1000, "reason": reason}

        async def work(store: Store) -> JSON:
            return await _make(store, sets, tenant_id, body, actor)

        if server is not None:
            local_only("actor")
            one = server.post(path_of(sets), body)
        else:
            one = run_for_tenant(data, tenant_id, work)
        said = f"{one['id']}: {rule} does nothing for {one['value']} until {one['until']}."
        show(one, said, as_json=as_json)


async def _make(store: Store, sets: RuleSets, tenant_id: str, body: JSON, actor: str) -> JSON:
    """Store a snooze; one in force that says the same is the one."""
    now_ms = clock.now_ms()
    rows = await store.read(sets.select_active(tenant_id))
    # A tenant of AML that never pushed any rules has the pack in force.
    document = rows[0][1] if rows else load_pack_text(sets.pack)
    known = [one.id for one in read_ruleset(document).rules]
    try:
        said = read_snooze(body, known, now_ms)
    except Refusal as refusal:
        faults = ", ".join(f"{name} {fault}" for name, fault in refusal.details.items())
        fail(faults or refusal.message)
    current = await store.read(sql.select_current_of(tenant_id, sets.pack, now_ms))
    if (same := said.found_in(map(sql.snooze_of, current))) is not None:
        return _out(same)
    one = Snooze(
        id=IdSource().make(PREFIX, now_ms),
        tenant=tenant_id,
        kind=sets.pack,
        rule=said.rule,
        type=said.type,
        value=said.value,
        reason=said.reason,
        author=actor,
        created_at_ms=now_ms,
        until_ms=said.until_ms,
        ended_at_ms=None,
    )
    try:
        await store.write(sql.insert_snooze(one), note_change(sql.AREA, tenant_id, one.id, now_ms))
    except Lost:  # The same came at the same time.
        return await _make(store, sets, tenant_id, body, actor)
    return _out(one)


def _add_unsnooze(group: click.Group, sets: RuleSets) -> None:
    text = "End the snooze ID: its rule acts again, unless another snooze holds it."
    example = f"vettance {group.name} unsnooze snz_0190… --tenant ten_0190…"

    @group.command("unsnooze", help=f"{text}\n\nExample: {example}")
    @click.argument("snooze_id", metavar="ID")
    @tenant_or_server
    @json_option
    @data_option
    def unsnooze(
        snooze_id: str,
        tenant_id: str,
        server: RemoteRules | None,
        as_json: bool,
        data: str | None,
    ) -> None:
        async def work(store: Store) -> None:
            now_ms = clock.now_ms()
            try:
                await store.write(
                    sql.end_snooze(tenant_id, sets.pack, snooze_id, now_ms),
                    note_change(sql.AREA, tenant_id, snooze_id, now_ms),
                )
            except Lost:
                fail(f"there is no such snooze; `vettance {group.name} snoozes` shows them")

        if server is not None:
            server.delete(f"{path_of(sets)}/{quote(snooze_id, safe='')}")
        else:
            run_for_tenant(data, tenant_id, work)
        show({"id": snooze_id, "ended": True}, f"{snooze_id} has ended.", as_json=as_json)


def _add_list(group: click.Group, sets: RuleSets) -> None:
    text = "Show the rules that do nothing for somebody, and until when."
    example = f"vettance {group.name} snoozes --tenant ten_0190…"

    @group.command("snoozes", help=f"{text}\n\nExample: {example}")
    @tenant_or_server
    @json_option
    @data_option
    def snoozes(tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None) -> None:
        async def work(store: Store) -> list[JSON]:
            rows = await store.read(sql.select_current_of(tenant_id, sets.pack, clock.now_ms()))
            return [_out(sql.snooze_of(row)) for row in rows]

        found = server.every(path_of(sets)) if server is not None else run_for_tenant(data, tenant_id, work)
        if not found and not as_json:
            click.echo("No rule is snoozed.")
            return
        show_table("Snoozed rules", found, as_json=as_json)


def path_of(sets: RuleSets) -> str:
    """Return where a service has the snoozes of a kind of rules."""
    return "/aml/rules/snoozes" if sets.pack == "aml" else "/rules/snoozes"


def _out(one: Snooze) -> JSON:
    return {
        "id": one.id,
        "ruleId": one.rule,
        "type": one.type.value,
        "value": one.value,
        "until": timestamp(one.until_ms),
        "reason": one.reason,
        "author": one.author,
        "createdAt": timestamp(one.created_at_ms),
    }
