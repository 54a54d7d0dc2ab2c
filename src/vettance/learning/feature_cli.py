"""The commands about the features that models of a tenant are made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vettance import clock
from vettance.commands import counted, data_option, fail, json_option, run_for_tenant, show, show_table
from vettance.errors import Invalid, Refusal
from vettance.learning.steering_cli import said_of
from vettance.rules.rule_file import file_argument
from vettance.rules.version_cli import tenant_option

if TYPE_CHECKING:
    from vettance.db.engine import Store
    from vettance.models.feature_set import FeatureSet
    from vettance.models.sql import ModelSetting


@click.group("features")
def features() -> None:
    """Look at the features that models are made of, and add your own.

    A file of YAML has `name: expression` of the rule language for each feature that is added or takes the
    place of one that comes along, and `name: null` for each that is left out.

    Example: vettance model features push own.yaml --tenant ten_0190…
    """


@features.command("show")
@tenant_option
@json_option
@data_option
def show_features(tenant_id: str, as_json: bool, data: str | None) -> None:
    """Show the features that are recorded with decisions.

    Example: vettance model features show --tenant ten_0190…
    """
    from vettance.learning.change_models import find_setting
    from vettance.models.feature_set import read_feature_set

    setting = run_for_tenant(data, tenant_id, lambda store: find_setting(store, tenant_id))
    if not setting.features:
        show({"featureSet": None, "features": []}, "No features are recorded yet.", as_json=as_json)
        return
    _show(read_feature_set(setting.features), "recorded", as_json=as_json)


@features.command("check")
@file_argument
@tenant_option
@json_option
@data_option
def check_features(file: Path, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Check the features of FILE as rules are checked, and show what would be recorded.

    Example: vettance model features check own.yaml --tenant ten_0190…
    """
    _show(_checked(file, tenant_id, data), "it would record", as_json=as_json)


@features.command("push")
@file_argument
@tenant_option
@json_option
@data_option
def push_features(file: Path, tenant_id: str, as_json: bool, data: str | None) -> None:
    """Have the features of FILE recorded from now on, in addition to those that come along.

    A file stands for all of a tenant's own features: those of the file before end. The model in service
    serves on while all that it was made from is still recorded; models are trained from decisions that have
    all features of the new set.

    Example: vettance model features push own.yaml --tenant ten_0190…
    """
    from vettance.learning.change_features import document_of
    from vettance.learning.change_models import find_setting, save_features

    found = _checked(file, tenant_id, data)

    async def work(store: Store) -> ModelSetting:
        try:
            await save_features(store, tenant_id, document_of(found), clock.now_ms())
        except Refusal as refusal:
            fail(str(refusal))
        return await find_setting(store, tenant_id)

    setting: ModelSetting = run_for_tenant(data, tenant_id, work)
    _show(found, "recorded from now on", as_json=as_json)
    if not as_json:
        click.echo(said_of(setting))


def _checked(file: Path, tenant_id: str, data: str | None) -> FeatureSet:
    """Read a file and check it; what is wrong ends the command, each fault in a line."""
    from vettance.learning.change_features import check_own

    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read: {error}")

    async def work(store: Store) -> Any:
        try:
            return await check_own(store, tenant_id, text)
        except Invalid as wrong:
            lines = [f"{name}: {said}" for name, said in wrong.details.items()]
            fail("\n".join([str(wrong), *lines]))

    found: FeatureSet = run_for_tenant(data, tenant_id, work)
    return found


def _show(found: FeatureSet, state: str, *, as_json: bool) -> None:
    rows = [one._asdict() for one in found.features]
    if as_json:
        show({"featureSet": found.digest, "features": rows}, "", as_json=True)
        return
    click.echo(f"Feature set {found.digest}, {state}: {counted(len(rows), 'feature')}.")
    show_table("Features", rows, as_json=False)
