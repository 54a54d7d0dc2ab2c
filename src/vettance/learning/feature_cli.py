"""The commands about the features that models of a tenant are made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vettance.commands import counted, data_option, fail, json_option, run_for_tenant, show, show_table
from vettance.errors import NotFound, Refusal
from vettance.option_types import Whole
from vettance.rules.remote_rules import RemoteRules, fault_of, local_only, tenant_or_server
from vettance.rules.rule_file import file_argument, refuse, warn
from vettance.rules.version_cli import VERSION, by_option, note_option

_PATH = "/models/features"
_NONE_RECORDED = "No features are recorded yet."

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vettance.db.engine import Store
    from vettance.governance.checked_features import CheckedFeatures
    from vettance.learning.change_features import FeaturesInForce, FeatureSteps
    from vettance.models.feature_set import FeatureSet


@click.group("features")
def features() -> None:
    """Look at the features that models are made of, and add your own.

    A file of YAML has `name: expression` of the rule language for each feature that is added or takes the
    place of one that comes along, and `name: null` for each that is left out.

    Example: vettance model features push own.yaml --tenant ten_0190…
    """


@features.command("show")
@tenant_or_server
@json_option
@data_option
def show_features(tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None) -> None:
    """Show the features that are recorded with decisions.

    Example: vettance model features show --tenant ten_0190…
    """
    if server is not None:
        _show_answer(server.get(_PATH), "recorded", as_json=as_json)
        return
    from vettance.learning.change_models import find_setting
    from vettance.models.feature_set import read_feature_set

    setting = run_for_tenant(data, tenant_id, lambda store: find_setting(store, tenant_id))
    if not setting.features:
        _show_rows(None, [], "recorded", None, as_json=as_json)
        return
    _show(read_feature_set(setting.features), "recorded", as_json=as_json)


@features.command("check")
@file_argument
@tenant_or_server
@json_option
@data_option
def check_features(
    file: Path, tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None
) -> None:
    """Check the features of FILE as rules are checked, and show what would be recorded.

    Example: vettance model features check own.yaml --tenant ten_0190…
    """
    if server is not None:
        _show_answer(_put(server, file, dryRun=True), "it would record", as_json=as_json)
        return
    from vettance.models.feature_set import read_feature_set

    _, found = _checked(file, tenant_id, data)
    _show(read_feature_set(found.features), "it would record", as_json=as_json)


@features.command("push")
@file_argument
@tenant_or_server
@note_option
@click.option("--over", type=Whole(0, VERSION.max), help="Only while this version is in force.")
@by_option
@json_option
@data_option
def push_features(
    file: Path,
    tenant_id: str,
    server: RemoteRules | None,
    note: str,
    over: int | None,
    actor: str,
    as_json: bool,
    data: str | None,
) -> None:
    """Have the features of FILE recorded from now on, in addition to those that come along.

    A file stands for all of a tenant's own features: those of the file before end. The model in service is
    scored by what it was made from until another one comes into service; models are trained from decisions
    that have all features of the new set.

    Example: vettance model features push own.yaml --tenant ten_0190… --note "Cents per item"
    """
    if server is not None:
        local_only("actor")
        _show_made(_put(server, file, note=note, over=over), as_json=as_json)
        return
    text, found = _checked(file, tenant_id, data)
    made = _steps(tenant_id, actor, data, lambda steps: steps.put(text, found.features, note, over=over))
    _show_version(made, as_json=as_json)


@features.command("versions")
@tenant_or_server
@json_option
@data_option
def list_versions(tenant_id: str, server: RemoteRules | None, as_json: bool, data: str | None) -> None:
    """Show the versions of a tenant's features, newest first: who made each, when, and what it changed.

    Example: vettance model features versions --tenant ten_0190…
    """
    from vettance.models.feature_version import feature_version_of, version_out
    from vettance.models.feature_version_sql import VERSIONS_KEPT, select_version_page

    async def work(store: Store) -> Any:
        return await store.read(select_version_page(tenant_id, None, VERSIONS_KEPT, 0, descending=True))

    if server is not None:
        versions = server.every(f"{_PATH}/versions")
    else:
        versions = [version_out(feature_version_of(row)) for row in run_for_tenant(data, tenant_id, work)]
    if as_json:
        show(versions, "", as_json=True)
        return
    rows = [
        {
            "version": one["version"],
            "features": one["featureSet"],
            "made": one["createdAt"],
            "by": one["author"],
            "changes": counted(len(one["changes"]), "feature"),
            "note": one["note"],
        }
        for one in versions
    ]
    show_table("Versions", rows, as_json=False)


@features.command("rollback")
@click.option("--to", type=VERSION, help="Which version; the one that was in force before when left out.")
@tenant_or_server
@note_option
@by_option
@json_option
@data_option
def roll_back_features(
    to: int | None,
    tenant_id: str,
    server: RemoteRules | None,
    note: str,
    actor: str,
    as_json: bool,
    data: str | None,
) -> None:
    """Have the features of an earlier version recorded again, as a new version.

    Example: vettance model features rollback --tenant ten_0190… --to 2
    """
    from vettance.governance.checked_features import check_feature_document

    if server is not None:
        local_only("actor")
        body = {"note": note} if to is None else {"note": note, "to": to}
        _show_made(server.post(f"{_PATH}/rollback", body), as_json=as_json)
        return

    async def step(steps: FeatureSteps) -> FeaturesInForce:
        earlier, call = await steps.find_earlier(to)
        checked = check_feature_document(call)
        if not checked.is_good:
            refuse(f"version {earlier.version.version}", checked.faults)
        return await steps.go_back(earlier, note)

    _show_version(_steps(tenant_id, actor, data, step), as_json=as_json)


def _steps(
    tenant_id: str,
    actor: str,
    data: str | None,
    step: Callable[[FeatureSteps], Awaitable[FeaturesInForce]],
) -> FeaturesInForce:
    """Take a step with a tenant's features; what is refused ends the command."""
    from vettance.learning.change_features import FeatureSteps

    async def work(store: Store) -> FeaturesInForce:
        try:
            return await step(FeatureSteps(store, tenant_id, actor))
        except NotFound:
            fail("there is no such version; `vettance model features versions` shows them")
        except Refusal as refusal:
            fail(refusal.message, **refusal.details)

    return run_for_tenant(data, tenant_id, work)


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read: {error}")


def _put(server: RemoteRules, file: Path, **members: Any) -> Any:
    """Have a service check the features of a file, or record them; return what it answers."""
    document = _text_of(file)
    answer = server.change(_PATH, {"document": document, **members})
    warn(fault_of(one, document) for one in answer["faults"])
    return answer


def _show_made(answer: Any, *, as_json: bool) -> None:
    if not as_json:
        click.echo(f"Version {answer['version']}: {counted(len(answer['changes']), 'feature')} changed.")
    _show_answer(answer, "recorded from now on", version=answer["version"], as_json=as_json)


def _show_answer(answer: Any, state: str, *, as_json: bool, version: int | None = None) -> None:
    """Show what a service answers about a set as one of the store is shown."""
    rows = [{name: one[name] for name in ("name", "value", "family", "text")} for one in answer["features"]]
    _show_rows(answer["featureSet"] or None, rows, state, version, as_json=as_json)


def _checked(file: Path, tenant_id: str, data: str | None) -> tuple[str, CheckedFeatures]:
    """Read a file and check it; what is wrong ends the command, each fault with its place."""
    from vettance.governance.checked_features import check_feature_document
    from vettance.learning.change_features import feature_call

    text = _text_of(file)
    call = run_for_tenant(data, tenant_id, lambda store: feature_call(store, tenant_id, text))
    found = check_feature_document(call)
    if not found.is_good:
        refuse(file, found.faults)
    warn(found.faults)
    return text, found


def _show_version(made: FeaturesInForce, *, as_json: bool) -> None:
    if not as_json:
        click.echo(
            f"Version {made.version.version}: {counted(len(made.version.changes), 'feature')} changed."
        )
    _show(made.features, "recorded from now on", version=made.version.version, as_json=as_json)


def _show(found: FeatureSet, state: str, *, as_json: bool, version: int | None = None) -> None:
    _show_rows(found.digest, [one._asdict() for one in found.features], state, version, as_json=as_json)


def _show_rows(
    digest: str | None, rows: list[dict[str, Any]], state: str, version: int | None, *, as_json: bool
) -> None:
    if as_json:
        members = {"featureSet": digest, "features": rows}
        show(members if version is None else {"version": version, **members}, "", as_json=True)
        return
    if digest is None:
        click.echo(_NONE_RECORDED)
        return
    click.echo(f"Feature set {digest}, {state}: {counted(len(rows), 'feature')}.")
    show_table("Features", rows, as_json=False)
