"""The command line of tenants and keys. Works before the server starts and while it runs."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from vettance import clock
from vettance.audit.act import describe
from vettance.commands import (
    confirm,
    data_option,
    fail,
    find_tenant,
    json_option,
    run_with_store,
    show,
    show_table,
)
from vettance.db.engine import Lost, Store
from vettance.ids import IdSource
from vettance.option_types import Whole
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import Environment, Settings
from vettance.tenants import sql
from vettance.tenants.key_scope import SCOPES_DEFAULT, KeyScope
from vettance.tenants.tenant import SETTINGS, Key, Tenant, new_key
from vettance.wire.payload import timestamp

_NAME_CHARS_MAX = 200

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def tenant() -> None:
    """Make, change, list and delete tenants.

    Example: vettance tenant create "Corner Shop"
    """


@click.group()
def key() -> None:
    """Make, revoke, rotate and list the API keys of tenants.

    Example: vettance key create --tenant ten_0190…
    """


def _read_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Read a tenant's name; for `callback` of an argument or option."""
    if value is None:
        return None
    name = value.strip()
    if not name or len(name) > _NAME_CHARS_MAX or not name.isprintable():
        raise click.BadParameter(f"a tenant's name has 1 to {_NAME_CHARS_MAX} printable characters")
    return name


def _read_key_name(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Read what people call a key; for `callback` of an option."""
    name = value.strip()
    if len(name) > _NAME_CHARS_MAX or not (name == "" or name.isprintable()):
        raise click.BadParameter(f"a key's name has at most {_NAME_CHARS_MAX} printable characters")
    return name


@tenant.command("create")
@click.argument("name", callback=_read_name)
@click.option("--aml", is_flag=True, help="Enable the AML product.")
@json_option
@data_option
def create_tenant(name: str, aml: bool, as_json: bool, data: str | None) -> None:
    """Make a tenant called NAME, with the default rule set.

    Example: vettance tenant create "Corner Shop" --json
    """

    # Only here: the language of rules takes longer to load than any other command of tenants to run.
    from vettance.rules.packs import load_pack_text
    from vettance.rules.sql import DECIDING

    async def work(store: Store, _settings: Settings) -> Tenant:
        now_ms = clock.now_ms()
        made = Tenant(id=IdSource().make("ten", now_ms), name=name, aml=aml)
        document = load_pack_text("fraud")
        await store.write(
            sql.insert_tenant(made, now_ms),
            DECIDING.insert(made.id, 1, document, "The default pack.", now_ms),
            sql.note_change(DECIDING.area, made.id, "1", now_ms),
            sql.note_change(sql.AREA, made.id, made.id, now_ms),
        )
        return made

    made = run_with_store(data, work, make=True)
    show(
        {"tenantId": made.id, "name": made.name, "aml": made.aml},
        f"Tenant {made.name} is {made.id}.\nNext: vettance key create --tenant {made.id}",
        as_json=as_json,
    )


def _setting_options(command: Command) -> Command:
    """Give a command an option for each setting of a tenant."""
    for name, setting in reversed(list(SETTINGS.items())):
        kind: click.ParamType[Any] = click.Choice(["on", "off"])
        if setting.kind is int:
            kind = Whole(setting.least, setting.most)
        command = click.option(f"--{name.replace('_', '-')}", name, type=kind, help=setting.help)(command)
    return command


@tenant.command("set")
@click.argument("tenant_id", metavar="ID")
@click.option("--name", callback=_read_name, help="A new name.")
@_setting_options
@json_option
@data_option
def set_tenant(
    tenant_id: str, name: str | None, as_json: bool, data: str | None, **given: int | str | None
) -> None:
    """Change the settings of tenant ID; a running server follows within seconds.

    Example: vettance tenant set ten_0190… --throttle 3000 --quota 1000000
    """
    changes = {
        setting: value == "on" if isinstance(value, str) else value
        for setting, value in given.items()
        if value is not None
    }
    renamed = {} if name is None else {"name": name}
    if not changes and not renamed:
        fail("nothing to change; `vettance tenant set --help` shows what can be")

    async def work(store: Store, _settings: Settings) -> Tenant:
        found = await find_tenant(store, tenant_id)
        changed = msgspec.structs.replace(found, **renamed, **changes)
        describe(before={name: getattr(found, name) for name in (*renamed, *changes)})
        await store.write(
            sql.update_tenant(changed), sql.note_change(sql.AREA, tenant_id, tenant_id, clock.now_ms())
        )
        return changed

    changed = run_with_store(data, work)
    show(_described(changed), f"Tenant {changed.name} is changed.", as_json=as_json)


def _described(one: Tenant) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(one)
    return {"tenantId": values.pop("id"), **values}


@tenant.command("show")
@click.argument("tenant_id", metavar="ID")
@json_option
@data_option
def show_tenant(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Show the settings of tenant ID, and its keys that work.

    Example: vettance tenant show ten_0190…
    """

    async def work(store: Store, _settings: Settings) -> tuple[Tenant, list[Key]]:
        found = await find_tenant(store, tenant_id)
        return found, [sql.key_of(row) for row in await store.read(sql.select_keys_of(tenant_id))]

    found, keys = run_with_store(data, work)
    working = [_described_key(one) for one in keys if one.revoked_at_ms is None]
    described = _described(found)
    if as_json:
        show(described | {"keys": working}, "", as_json=True)
        return
    width = max(map(len, described))
    click.echo("\n".join(f"{name:{width}}  {_said(value)}" for name, value in described.items()) + "\n")
    show_table("Keys that work", working, as_json=False)


def _said(value: str | int | bool | None) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else value


@tenant.command("list")
@json_option
@data_option
def list_tenants(as_json: bool, data: str | None) -> None:
    """List every tenant.

    Example: vettance tenant list --data ./vettance-data
    """

    async def work(store: Store, _settings: Settings) -> list[Tenant]:
        return [sql.tenant_of(row) for row in await store.read(sql.select_tenants())]

    rows = [_described(one) for one in run_with_store(data, work)]
    show_table("Tenants", rows, as_json=as_json)


@tenant.command("delete")
@click.argument("tenant_id", metavar="ID")
@click.option("--yes", "-y", is_flag=True, help="Delete without asking.")
@json_option
@data_option
def delete_tenant(tenant_id: str, yes: bool, as_json: bool, data: str | None) -> None:
    """Delete tenant ID with everything stored of it, for good; safe beside running servers.

    Its keys stop working within 5 seconds. Interrupted, it is ended by calling it again.

    Example: vettance tenant delete ten_0190… --yes
    """
    from vettance.retention import cli as retention

    found, counts = run_with_store(data, lambda store, _: retention.count_tenant(store, tenant_id))
    if not yes:
        confirm(
            f"this deletes {found.name} ({tenant_id}) with {retention.shown_rows(counts)}", as_json=as_json
        )
    removed = run_with_store(
        data, lambda store, settings: retention.delete_tenant(store, settings, tenant_id)
    )
    show(
        {"tenantId": tenant_id, "deleted": True, "rows": removed},
        f"Tenant {found.name} is deleted, with {retention.shown_rows(removed)}.",
        as_json=as_json,
    )


@key.command("create")
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose key it will be.")
@click.option(
    "--other-secret",
    is_flag=True,
    help="Go on with another secret than the store was made with; earlier keys work no more.",
)
@click.option("--name", default="", callback=_read_key_name, help="What people call it: its service, say.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=[scope.value for scope in SCOPES_DEFAULT],
    show_default=True,
    type=click.Choice([scope.value for scope in KeyScope]),
    help="What it may do; can be given several times.",
)
@json_option
@data_option
def create_key(
    tenant_id: str,
    other_secret: bool,
    name: str,
    scopes: tuple[str, ...],
    as_json: bool,
    data: str | None,
) -> None:
    """Make an API key. It is shown once and cannot be shown again.

    Scopes: decide (all that products need), read (whatever changes nothing), rules, review, manage.

    Example: vettance key create --tenant ten_0190… --name checkout
    """
    from vettance.tenants.vault import secret_digest
    from vettance.webhooks.secret_check import prove_secret

    async def work(store: Store, settings: Settings) -> tuple[Key, str]:
        await find_tenant(store, tenant_id)
        secret = load_secret(settings) if other_secret else await prove_secret(store, settings)
        taken = [sql.replace_secret_digest(secret_digest(secret))] if other_secret else []
        made, text = _new_key(tenant_id, settings, secret, name, frozenset(map(KeyScope, scopes)))
        await store.write(
            *taken, sql.insert_key(made), sql.note_change(sql.AREA, tenant_id, made.id, clock.now_ms())
        )
        return made, text

    made, text = run_with_store(data, work)
    _show_key(made, text, as_json=as_json)


def _new_key(
    tenant_id: str, settings: Settings, secret: bytes, name: str, scopes: frozenset[KeyScope]
) -> tuple[Key, str]:
    live = settings.environment is Environment.PRODUCTION
    return new_key(IdSource().make("key"), tenant_id, name, secret, clock.now_ms(), live=live, scopes=scopes)


def _show_key(made: Key, text: str, *, as_json: bool) -> None:
    scopes = ", ".join(sorted(made.scopes))
    show(
        {"keyId": made.id, "apiKey": text},
        f"Key {made.id} ({scopes}):\n\n    {text}\n\n"
        "Keep it on your server; it is not stored here and not shown again.\n"
        "A running service takes it at once.",
        as_json=as_json,
    )


@key.command("list")
@click.option("--tenant", "tenant_id", metavar="ID", help="Only this tenant's keys.")
@json_option
@data_option
def list_keys(tenant_id: str | None, as_json: bool, data: str | None) -> None:
    """List keys by name, last characters and last use; the keys themselves are not stored.

    Example: vettance key list --tenant ten_0190…
    """

    async def work(store: Store, _settings: Settings) -> list[Key]:
        if tenant_id is not None:
            await find_tenant(store, tenant_id)
        return [sql.key_of(row) for row in await store.read(sql.select_keys())]

    keys = run_with_store(data, work)
    rows = [_described_key(one) for one in keys if tenant_id in (None, one.tenant)]
    show_table("API keys", rows, as_json=as_json)


def _described_key(one: Key) -> dict[str, Any]:
    return {
        "keyId": one.id,
        "tenantId": one.tenant,
        "name": one.name,
        "hint": one.hint,
        "scopes": sorted(scope.value for scope in one.scopes),
        "createdAt": timestamp(one.created_at_ms),
        "lastUsedAt": _moment(one.last_used_at_ms),
        "revokedAt": _moment(one.revoked_at_ms),
    }


def _moment(at_ms: int | None) -> str | None:
    return timestamp(at_ms) if at_ms is not None else None


@key.command("revoke")
@click.argument("key_id")
@json_option
@data_option
def revoke_key(key_id: str, as_json: bool, data: str | None) -> None:
    """Revoke a key; it stops working everywhere within 5 seconds.

    Example: vettance key revoke key_0190…
    """

    async def work(store: Store, _settings: Settings) -> None:
        found = await _find_key(store, key_id)
        try:
            await store.write(
                sql.revoke_key(key_id, clock.now_ms()),
                sql.note_change(sql.AREA, found.tenant, key_id, clock.now_ms()),
            )
        except Lost:
            fail(f"key {key_id} was revoked already")

    run_with_store(data, work)
    show({"keyId": key_id, "revoked": True}, f"Key {key_id} is revoked.", as_json=as_json)


async def _find_key(store: Store, key_id: str) -> Key:
    rows = await store.read(sql.select_key(key_id))
    if not rows:
        fail(f"there is no key {key_id}; `vettance key list` shows them")
    return sql.key_of(rows[0])


@key.command("rotate")
@click.argument("key_id")
@json_option
@data_option
def rotate_key(key_id: str, as_json: bool, data: str | None) -> None:
    """Make a new key for the tenant of KEY_ID and revoke KEY_ID, in one step.

    Example: vettance key rotate key_0190…
    """
    from vettance.webhooks.secret_check import prove_secret

    async def work(store: Store, settings: Settings) -> tuple[Key, str]:
        found = await _find_key(store, key_id)
        secret = await prove_secret(store, settings)
        made, text = _new_key(found.tenant, settings, secret, found.name, found.scopes)
        try:
            await store.write(
                sql.revoke_key(key_id, clock.now_ms()),
                sql.insert_key(made),
                sql.note_change(sql.AREA, found.tenant, key_id, clock.now_ms()),
            )
        except Lost:
            fail(f"key {key_id} was revoked already")
        return made, text

    made, text = run_with_store(data, work)
    _show_key(made, text, as_json=as_json)
