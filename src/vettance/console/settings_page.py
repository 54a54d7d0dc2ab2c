"""Settings: the switches of the organisation, its keys, its limits, and how old its watchlists are."""

import hashlib
from typing import Any, Final

import msgspec

from vettance.aml import sql as aml_sql
from vettance.aml.case import OfficerSettings
from vettance.aml.settings.sql import save_officers
from vettance.audit.act import describe
from vettance.console.page import ADMINS, OVERSEERS, ConsolePage, PageAnswer, View, Visit
from vettance.console.shown_once import lead_to, with_shown
from vettance.console.words import Words
from vettance.db.engine import Lost
from vettance.errors import Conflict, NotFound, Unprocessable
from vettance.ids import is_id
from vettance.tenants import sql
from vettance.tenants.key_scope import SCOPES, SCOPES_DEFAULT, KeyScope
from vettance.tenants.tenant import SETTINGS, Key, Tenant, new_key
from vettance.wire.payload import encode

PATH: Final = "/console/settings"
_NAME_CHARS_MAX: Final = 200
_DIGITS_MAX: Final = 9
#: What the organisation decides for itself; limits are the operator's.
SWITCHES: Final = ("rule_approval", "second_factor", "review_denied", "collect_key", "require_origin")
NUMBERS: Final = ("review_hours", "review_checks")
#: The same for officers, where the AML product is on.
AML_SWITCHES: Final = {
    "four_eyes": Words("Closing a case needs a second officer."),
    "inline_screening": Words("Names in AML events are compared with the watchlists."),
}
#: What the operator keeps for so many days, by the name in the policy.
_KEPT: Final = {
    "events": Words("Events, their decisions and labels"),
    "statistics": Words("Counts, which name nobody"),
    "screenings": Words("Screenings without a case"),
    "deliveries": Words("Deliveries of webhooks"),
}
_LIMITS: Final = ("throttle", "quota", "subscriptions", "list_entries")


async def settings(visit: Visit) -> PageAnswer:
    """GET /console/settings."""
    return with_shown(visit, await _page(visit))


async def save(visit: Visit) -> PageAnswer:
    """POST /console/settings. A form that is no longer true comes back as it was filled in."""
    now, officers = await _current(visit)
    wanted: dict[str, bool | int] = {name: name in visit.form for name in (*SWITCHES, *AML_SWITCHES)}
    wanted |= _numbers(visit, now)
    if visit.form.get("seen") != _seen(now, officers):
        return await _page(
            visit,
            wanted,
            "Somebody has changed the settings since you opened this page. "
            "What you chose is still marked below; look at it once more and save.",
        )
    changed = msgspec.structs.replace(now, **{name: wanted[name] for name in (*SWITCHES, *NUMBERS)})
    statements = [sql.update_tenant(changed), sql.note_change(sql.AREA, now.id, now.id, visit.now_ms)]
    if now.aml:
        changed_officers = msgspec.structs.replace(officers, **{name: wanted[name] for name in AML_SWITCHES})
        statements += [
            save_officers(now.id, changed_officers),
            sql.note_change(aml_sql.AREA, now.id, "settings", visit.now_ms),
        ]
    describe(before=_chosen(now, officers), after=wanted)
    await visit.parts.acts.write(*statements)
    return visit.redirect(PATH, notice="saved")


async def create_key(visit: Visit) -> PageAnswer:
    """POST /console/settings/keys. The settings show the key, once."""
    name = visit.form.get("name")
    if len(name) > _NAME_CHARS_MAX or not (name == "" or name.isprintable()):
        raise Unprocessable(
            "No key was made.", {"name": f"has at most {_NAME_CHARS_MAX} printable characters"}
        )
    given = set(visit.form.all("scope")) or SCOPES_DEFAULT
    chosen = frozenset(scope for scope in KeyScope if scope in given)
    if len(chosen) < len(given):
        raise Unprocessable("No key was made.", {"scope": "a scope is one of " + ", ".join(KeyScope)})
    parts, tenant = visit.parts, visit.tenant
    made, text = new_key(
        parts.ids.make("key", visit.now_ms),
        tenant.id,
        name,
        parts.secret,
        visit.now_ms,
        live=parts.live_keys,
        scopes=chosen,
    )
    describe(subject=made.id, after={"name": name, "hint": made.hint, "scopes": sorted(chosen)})
    await parts.acts.write(sql.insert_key(made), sql.note_change(sql.AREA, tenant.id, made.id, visit.now_ms))
    return lead_to(visit, PATH, key=text, name=name)


async def revoke_key(visit: Visit) -> PageAnswer:
    """POST /console/settings/keys/{id}/revoke."""
    key_id, tenant = visit.path["id"], visit.tenant
    if not is_id(key_id, "key") or key_id not in {one.id for one in await _keys(visit)}:
        raise NotFound
    try:
        await visit.parts.acts.write(
            sql.revoke_key(key_id, visit.now_ms),
            sql.note_change(sql.AREA, tenant.id, key_id, visit.now_ms),
        )
    except Lost:
        raise Conflict("That key was revoked already.", "already_revoked") from None
    return visit.redirect(PATH, notice="key-revoked")


async def _page(visit: Visit, wanted: dict[str, bool | int] | None = None, warning: str = "") -> View:
    now, officers = await _current(visit)
    chosen = wanted or _chosen(now, officers)
    values = {
        "warning": warning,
        "seen": _seen(now, officers),
        "switches": [(name, SETTINGS[name].help, chosen[name]) for name in SWITCHES],
        "numbers": [(name, SETTINGS[name], chosen[name]) for name in NUMBERS],
        "officer_switches": [(name, text, chosen[name]) for name, text in AML_SWITCHES.items()]
        if now.aml
        else [],
        "limits": [(SETTINGS[name].help, getattr(now, name)) for name in _LIMITS],
        "kept": [(words, getattr(visit.parts.keep, name)) for name, words in _KEPT.items()],
        "keys": [_shown(one) for one in await _keys(visit) if one.revoked_at_ms is None],
        "scopes": [(scope.value, text, scope in SCOPES_DEFAULT) for scope, text in SCOPES.items()],
        "watchlists": await _watchlists(visit),
        "may_change": visit.may(*ADMINS),
    }
    return View("settings.html", values, title=Words("Settings"), status=409 if warning else 200)


async def _current(visit: Visit) -> tuple[Tenant, OfficerSettings]:
    """Return the settings as the store has them now; this process may learn of a change a second later."""
    store, tenant_id = visit.parts.store, visit.tenant.id
    rows = await store.read(sql.select_tenant(tenant_id))
    if not rows:
        raise NotFound
    return sql.tenant_of(rows[0]), aml_sql.settings_of(await store.read(aml_sql.select_settings(tenant_id)))


def _numbers(visit: Visit, now: Tenant) -> dict[str, int]:
    """Read the numbers of the form; one that it does not have stays. Raises `Unprocessable`."""
    found, faults = {}, {}
    for name in NUMBERS:
        text, one = visit.form.get(name) or str(getattr(now, name)), SETTINGS[name]
        is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
        if is_number and one.least <= int(text) <= one.most:
            found[name] = int(text)
        else:
            faults[name] = f"must be a whole number from {one.least} to {one.most:,}"
    if faults:
        raise Unprocessable("Correct what is marked, and save again.", faults)
    return found


def _chosen(tenant: Tenant, officers: OfficerSettings) -> dict[str, bool | int]:
    return {name: getattr(tenant, name) for name in (*SWITCHES, *NUMBERS)} | {
        name: getattr(officers, name) for name in AML_SWITCHES
    }


def _seen(tenant: Tenant, officers: OfficerSettings) -> str:
    return hashlib.sha256(encode(_chosen(tenant, officers))).hexdigest()[:16]


async def _keys(visit: Visit) -> list[Key]:
    rows = await visit.parts.store.read(sql.select_keys_of(visit.tenant.id))
    return [sql.key_of(row) for row in rows]


def _shown(one: Key) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "hint": one.hint,
        "scopes": sorted(one.scopes),
        "created": one.created_at_ms,
        "used": one.last_used_at_ms,
    }


async def _watchlists(visit: Visit) -> list[dict[str, Any]]:
    if not visit.tenant.aml:
        return []
    found: list[dict[str, Any]] = (await visit.ask("GET", "/api/v1/aml/watchlists"))["data"]
    return found


PAGES: Final = (
    ConsolePage("GET", PATH, OVERSEERS, settings),
    ConsolePage("POST", PATH, ADMINS, save),
    ConsolePage("POST", f"{PATH}/keys", ADMINS, create_key),
    ConsolePage("POST", f"{PATH}/keys/{{id}}/revoke", ADMINS, revoke_key),
)
