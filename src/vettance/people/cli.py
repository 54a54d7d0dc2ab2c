"""The command line of users. Works before the server starts and while it runs."""

import sys
from typing import Any, Final

import click

from vettance import clock
from vettance.audit.act import describe
from vettance.commands import data_option, fail, find_tenant, json_option, run_with_store, show, show_table
from vettance.db.engine import Clash, Statement, Store
from vettance.ids import IdSource
from vettance.people import sql
from vettance.people.administer import give_link, link_path
from vettance.people.password import CHARS_MAX, CHARS_MIN, hash_password, refused_because
from vettance.people.role import MEANINGS, Role, read_roles
from vettance.people.user import UserAccount, new_token, read_email, read_name
from vettance.settings.settings import Settings
from vettance.wire.payload import timestamp

_ROLES: Final = "\n".join(f"  {role:8}  {meaning}" for role, meaning in MEANINGS.items())


@click.group()
def user() -> None:
    """Make, change and list the users of the console, and give them links.

    Example: vettance user create ada@example.com --tenant ten_0190… --role analyst
    """


def _email(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    email = read_email(value)
    if email is None:
        raise click.BadParameter("this is not an e-mail address")
    return email


def _name(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    name = read_name(value)
    if name is None:
        raise click.BadParameter("a name has at most 200 printable characters")
    return name


_email_argument: Final = click.argument("email", callback=_email)
_role_option: Final = click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice([role.value for role in Role]),
    help="What they may do; several add up.",
)


@user.command("create", epilog=f"Roles:\n\n\b\n{_ROLES}")
@_email_argument
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="For which tenant.")
@_role_option
@click.option("--name", default="", callback=_name, help="What colleagues call them.")
@click.option("--password-stdin", is_flag=True, help="Read their password from standard input; no link.")
@json_option
@data_option
def create_user(
    email: str,
    tenant_id: str,
    roles: tuple[str, ...],
    name: str,
    password_stdin: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Make a user who may sign in to the console.

    The answer is a link that works once, for 24 hours, and lets them set a password. A user who exists gets
    roles for a further tenant by `vettance user set`.

    Example: vettance user create ada@example.com --tenant ten_0190… --role analyst --role lead
    """
    if not roles:
        fail("say with --role what they may do; see 'vettance user create --help'")
    hashed = hash_password(_read_password()) if password_stdin else None
    token = None if password_stdin else new_token()

    async def work(store: Store, _settings: Settings) -> UserAccount:
        await find_tenant(store, tenant_id)
        now_ms = clock.now_ms()
        made = UserAccount(
            id=IdSource().make("usr", now_ms),
            email=email,
            name=name,
            password=hashed,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        try:
            await store.write(
                sql.insert_user(made),
                sql.put_membership(tenant_id, made.id, map(Role, roles), now_ms),
                *(give_link(made.id, token, now_ms) if token else ()),
            )
        except Clash:
            fail(f"there is a user {email} already; `vettance user set` gives them further roles")
        return made

    made = run_with_store(data, work)
    link = None if token is None else link_path(token)
    show(
        {"userId": made.id, "email": made.email, "link": link},
        f"User {made.email} is {made.id}.\n" + ("They sign in at /console." if link is None else _said(link)),
        as_json=as_json,
    )


def _read_password() -> str:
    """Read a password from standard input, its first line; a fault ends the command."""
    try:
        text = sys.stdin.buffer.read(CHARS_MAX * 8).decode()
    except UnicodeDecodeError:
        fail("the password is not UTF-8")
    password = text.split("\n", 1)[0].removesuffix("\r")
    reason = refused_because(password)
    if reason is not None:
        fail(f"the password {reason}; passwords have {CHARS_MIN} to {CHARS_MAX} characters")
    return password


def _said(link: str) -> str:
    return (
        f"Their link, behind the address of the service, works once within 24 hours:\n\n    {link}\n\n"
        "It is not shown again; `vettance user link` makes another one."
    )


@user.command("link")
@_email_argument
@json_option
@data_option
def link_user(email: str, as_json: bool, data: str | None) -> None:
    """Make a new link by which a user sets a password; earlier links of theirs end.

    Example: vettance user link ada@example.com
    """
    token = new_token()

    async def work(store: Store, _settings: Settings) -> None:
        found = await _find_user(store, email)
        if found.disabled:
            fail(f"{email} is disabled; `vettance user set {email} --disabled off` first")
        await _say_before(store, found)
        await store.write(*give_link(found.id, token, clock.now_ms()))

    run_with_store(data, work)
    show({"link": link_path(token)}, _said(link_path(token)), as_json=as_json)


@user.command("list")
@click.option("--tenant", "tenant_id", metavar="ID", help="Only users with roles for this tenant.")
@json_option
@data_option
def list_users(tenant_id: str | None, as_json: bool, data: str | None) -> None:
    """List users with what they may do.

    Example: vettance user list --tenant ten_0190…
    """

    async def work(store: Store, _settings: Settings) -> list[dict[str, Any]]:
        if tenant_id is not None:
            await find_tenant(store, tenant_id)
        parts: dict[str, list[dict[str, Any]]] = {}
        for user_id, tenant, roles in await store.read(sql.select_memberships()):
            parts.setdefault(user_id, []).append({"tenantId": tenant, "roles": sorted(read_roles(roles))})
        users = map(sql.user_of, await store.read(sql.select_users()))
        rows = [_described(one, parts.get(one.id, [])) for one in users]
        return [
            row
            for row in rows
            if tenant_id is None or tenant_id in [part["tenantId"] for part in row["memberships"]]
        ]

    rows = run_with_store(data, work)
    if not as_json:
        for row in rows:
            row["memberships"] = "; ".join(
                f"{part['tenantId']}: {', '.join(part['roles'])}" for part in row["memberships"]
            )
    show_table("Users", rows, as_json=as_json)


def _described(one: UserAccount, memberships: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "userId": one.id,
        "email": one.email,
        "name": one.name,
        "disabled": one.disabled,
        "secondFactor": one.totp is not None,
        "createdAt": timestamp(one.created_at_ms),
        "memberships": memberships,
    }


@user.command("set", epilog=f"Roles:\n\n\b\n{_ROLES}")
@_email_argument
@click.option("--tenant", "tenant_id", metavar="ID", help="For which tenant --role and --remove are.")
@_role_option
@click.option("--remove", is_flag=True, help="Take away every role for the tenant.")
@click.option("--disabled", type=click.Choice(["on", "off"]), help="Keep them from signing in, or not.")
@click.option("--reset-second-factor", is_flag=True, help="Forget their second factor: a phone was lost.")
@json_option
@data_option
def set_user(
    email: str,
    tenant_id: str | None,
    roles: tuple[str, ...],
    remove: bool,
    disabled: str | None,
    reset_second_factor: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Change what a user may do; their sessions end everywhere within seconds.

    With --tenant, the roles given replace those they have for that tenant, or are their first there.

    Example: vettance user set ada@example.com --tenant ten_0190… --role lead
    """
    if bool(tenant_id) != bool(roles or remove) or (roles and remove):
        fail("give --tenant together with --role, or with --remove")
    if not (tenant_id or disabled or reset_second_factor):
        fail("nothing to change; `vettance user set --help` shows what can be")

    async def work(store: Store, _settings: Settings) -> dict[str, Any]:
        found, now_ms = await _find_user(store, email), clock.now_ms()
        changes: list[Statement] = []
        await _say_before(store, found, tenant_id)
        if tenant_id:
            await find_tenant(store, tenant_id)
            changes.append(
                sql.remove_membership(tenant_id, found.id)
                if remove
                else sql.put_membership(tenant_id, found.id, map(Role, roles), now_ms)
            )
        if disabled is not None:
            changes.append(sql.change_user(found.id, now_ms, disabled=disabled == "on"))
        if reset_second_factor:
            changes.append(sql.change_user(found.id, now_ms, totp=None, totp_new=None, totp_step=0))
            changes += sql.replace_recovery_codes(found.id, ())
        await store.write(*changes, sql.end_sessions_of(found.id))
        parts = [
            {"tenantId": row[0], "roles": sorted(read_roles(row[2]))}
            for row in await store.read(sql.select_memberships_of(found.id))
        ]
        return _described(await _find_user(store, email), parts)

    described = run_with_store(data, work)
    show(described, f"User {email} is changed; their sessions have ended.", as_json=as_json)


async def _find_user(store: Store, email: str) -> UserAccount:
    rows = await store.read(sql.select_user_by_email(email))
    if not rows:
        fail(f"there is no user {email}; `vettance user list` shows them")
    return sql.user_of(rows[0])


async def _say_before(store: Store, user: UserAccount, tenant_id: str | None = None) -> None:
    """Tell the audit log what a user may do before a change, in the chain of a tenant of theirs."""
    parts = await store.read(sql.select_memberships_of(user.id))
    roles = {row[0]: sorted(read_roles(row[2])) for row in parts}
    tenant = tenant_id or next(iter(roles), None)
    describe(before={"disabled": user.disabled, "roles": roles}, tenant=tenant)
