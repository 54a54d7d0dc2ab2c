"""What the store remembers of models: those that were made, and which one serves a tenant and how."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from vettance.db.engine import Row, Statement, everyone, insert, scoped
from vettance.db.tables import MODEL, MODEL_SETTING, Insert
from vettance.models.serving_model import ModelMode

#: What a change of a tenant's models is noted as.
AREA: Final = "model"
#: Models of a tenant that are kept.
KEPT: Final = 5

_INSERT: Final = Insert(
    MODEL, "tenant, version, digest, features, body, card, created_at_ms, average_precision"
)
_SETTING: Final = (
    "tenant, mode, may_block, features, champion, previous, trained_frauds, trained_at_ms, wanted, failure"
)
_SAVE: Final = Insert(
    MODEL_SETTING,
    _SETTING,
    key="tenant",
    sets=", ".join(f"{name.strip()} = excluded.{name.strip()}" for name in _SETTING.split(",")[1:]),
)


class ModelSetting(msgspec.Struct, frozen=True):
    """How a tenant's models are made and used.

    `champion` is the version in service and `previous` the one before it; None stands for the rules alone.
    `trained_frauds` is how many labels of fraud there were when a model was last trained; `wanted` asks for
    another one. `failure` says why the last training gave none.
    """

    tenant: str
    mode: ModelMode = ModelMode.SHADOW
    may_block: bool = False
    features: str = ""
    champion: int | None = None
    previous: int | None = None
    trained_frauds: int = 0
    trained_at_ms: int = 0
    wanted: bool = False
    failure: str | None = None


class StoredModel(NamedTuple):
    """A model as it is stored: its text with its digest, its features and its card, both as text."""

    version: int
    digest: str
    features: str
    body: str
    card: str
    created_at_ms: int


def save_setting(one: ModelSetting) -> Statement:
    """Store how a tenant's models are used."""
    values = msgspec.structs.astuple(one)[1:]
    return insert(_SAVE, one.tenant, [int(each) if isinstance(each, bool) else each for each in values])


def demand_setting(one: ModelSetting) -> list[Statement]:
    """Demand that nobody has changed how a tenant's models are used; `Lost` when somebody has.

    Nothing is demanded where nothing was set yet.
    """
    if one == ModelSetting(one.tenant):
        return []
    champion, previous = (-1 if value is None else value for value in (one.champion, one.previous))
    return [
        scoped(
            MODEL_SETTING,
            one.tenant,
            "UPDATE model_setting SET tenant = ? WHERE tenant = ? AND mode = ? AND may_block = ? "
            "AND COALESCE(champion, -1) = ? AND COALESCE(previous, -1) = ? AND features = ?",
            (one.tenant, one.mode, int(one.may_block), champion, previous, one.features),
            rows=1,
        )
    ]


def setting_of(row: Row) -> ModelSetting:
    """Make a setting of a row."""
    tenant, mode, may_block, features, champion, previous, frauds, at_ms, wanted, failure = row
    return ModelSetting(
        *(tenant, ModelMode(mode), bool(may_block), features, champion, previous),
        *(frauds, at_ms, bool(wanted), failure),
    )


def select_setting(tenant: str) -> Statement:
    """How a tenant's models are used; no row where nobody has labelled yet."""
    return scoped(MODEL_SETTING, tenant, f"SELECT {_SETTING} FROM model_setting WHERE tenant = ?")


def select_in_service(tenant: str) -> Statement:
    """(mode, version in service) of a tenant; no row where nobody has labelled yet."""
    return scoped(MODEL_SETTING, tenant, "SELECT mode, champion FROM model_setting WHERE tenant = ?")


def select_settings() -> Statement:
    """The same of all tenants."""
    return everyone(MODEL_SETTING, f"SELECT {_SETTING} FROM model_setting ORDER BY tenant")


def select_states() -> Statement:
    """The settings of all tenants, with `-` for features that there are: a loop reads this every second."""
    columns = _SETTING.replace("features", "CASE WHEN features = '' THEN '' ELSE '-' END")
    return everyone(MODEL_SETTING, f"SELECT {columns} FROM model_setting ORDER BY tenant")


def select_features(tenant: str) -> Statement:
    """(features in force, mode, features of the champion) of a tenant."""
    return scoped(
        MODEL_SETTING.reading(MODEL),
        tenant,
        "SELECT model_setting.features, mode, model.features FROM model_setting LEFT JOIN model "
        "ON model.tenant = model_setting.tenant AND model.version = champion WHERE model_setting.tenant = ?",
    )


def select_features_of(tenant: str, versions: Sequence[int]) -> Statement:
    """(version, features) of some models."""
    places = ", ".join("?" * len(versions))
    return scoped(
        MODEL,
        tenant,
        f"SELECT version, features FROM model WHERE tenant = ? AND version IN ({places}) ORDER BY version",
        tuple(versions),
    )


def insert_model(tenant: str, one: StoredModel, average_precision: float | None = None) -> Statement:
    """Store a model; `Clash` when another process stored that version first."""
    values = one.version, one.digest, one.features, one.body, one.card, one.created_at_ms
    return insert(_INSERT, tenant, (*values, average_precision))


def select_models(tenant: str) -> Statement:
    """(version, card, created_at_ms) of a tenant's models, newest first."""
    return scoped(
        MODEL,
        tenant,
        "SELECT version, card, created_at_ms FROM model WHERE tenant = ? ORDER BY version DESC",
    )


def select_model(tenant: str, version: int) -> Statement:
    """One model, in the order of `StoredModel`."""
    return scoped(
        MODEL,
        tenant,
        "SELECT version, digest, features, body, card, created_at_ms FROM model "
        "WHERE tenant = ? AND version = ?",
        (version,),
    )


def forget_older(tenant: str, oldest: int, champion: int | None, previous: int | None) -> Statement:
    """Remove the models before a version, but those that serve or served last."""
    return scoped(
        MODEL,
        tenant,
        "DELETE FROM model WHERE tenant = ? AND version < ? AND version NOT IN (?, ?)",
        (oldest, -1 if champion is None else champion, -1 if previous is None else previous),
    )
