"""Finds, checks and changes the features that are recorded for a tenant, each change as a version."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from vettance import clock
from vettance.audit.act import describe
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Conflict, NotFound
from vettance.fairness.time_slice import TimeSlice
from vettance.governance.checked_features import FeatureCall
from vettance.learning import sql
from vettance.learning.change_models import TRIES, changed_meanwhile, find_setting
from vettance.models import feature_version_sql
from vettance.models import sql as models_sql
from vettance.models.discovery import MemberCounts, features_of
from vettance.models.feature_set import Feature, FeatureSet, read_feature_set, write_feature_set
from vettance.models.feature_version import (
    FeatureVersion,
    feature_version_of,
    find_changes,
)
from vettance.models.own_features import own_document
from vettance.models.sql import ModelSetting
from vettance.rules.packs import load_pack_text
from vettance.rules.sql import DECIDING
from vettance.rules.version import SERVICE
from vettance.tenants.sql import note_change
from vettance.wire.payload import decode

#: Events that are looked through for keys and numbers.
EVENTS_LOOKED_THROUGH: Final = 2_000
_EARLIER: Final = "Recorded before versions were kept."


class FeaturesInForce(NamedTuple):
    """The version in force with its document and its whole set; without one, `version` is 0."""

    version: FeatureVersion
    document: str
    features: FeatureSet


async def find_features(store: Store, tenant: str) -> list[Feature]:
    """Return the features that come along for the keys and numbers of a tenant's newest events.

    None where it has no events yet.
    """
    rows = await store.read(sql.select_recent_bodies(tenant, EVENTS_LOOKED_THROUGH))
    counts = await count_members(sent for _, sent in rows)
    return features_of(counts.members()) if len(counts) else []


async def count_members(bodies: Iterable[bytes]) -> MemberCounts:
    """Look through events, leaving the loop to others in between; those that cannot be read are left out."""
    counts, turn = MemberCounts(), TimeSlice()
    for sent in bodies:
        with contextlib.suppress(Exception):
            counts.add(decode(sent))
        await turn.pause_when_over()
    return counts


async def feature_call(store: Store, tenant: str, document: str) -> FeatureCall:
    """Return what is to be checked of a document of own features."""
    found = await find_features(store, tenant)
    return FeatureCall(document, tuple(found), *await find_rules_and_serving(store, tenant))


async def find_rules_and_serving(store: Store, tenant: str) -> tuple[str, str | None]:
    """Return the rules in force, and the features of the model in service."""
    rules = await store.read(DECIDING.select_active(tenant))
    document = rules[0][1] if rules else load_pack_text(DECIDING.pack)
    rows = await store.read(models_sql.select_features(tenant))
    return document, rows[0][2] if rows else None


async def find_version(store: Store, tenant: str, version: int) -> FeaturesInForce:
    """Return a version with its texts. Raises `NotFound`."""
    rows = await store.read(feature_version_sql.select_version(tenant, version))
    if not rows:
        raise NotFound
    *columns, document, features = rows[0]
    return FeaturesInForce(feature_version_of(tuple(columns)), document, read_feature_set(features))


async def find_in_force(store: Store, tenant: str) -> FeaturesInForce | None:
    """Return the set in force; None where none is recorded yet."""
    setting = await find_setting(store, tenant)
    if not setting.features:
        return None
    rows = await store.read(feature_version_sql.select_newest_version(tenant))
    if rows:
        return await find_version(store, tenant, rows[0][0])
    features = read_feature_set(setting.features)
    document = own_document(await find_features(store, tenant), features)
    return FeaturesInForce(_earlier(0, features), document, features)


def _earlier(version: int, features: FeatureSet) -> FeatureVersion:
    return FeatureVersion(version, features.digest, _EARLIER, SERVICE, None, 0, ())


class FeatureSteps:
    """The steps that `actor` takes with a tenant's feature set, each in one commit."""

    def __init__(
        self, store: Store, tenant: str, actor: str, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._actor = actor
        self._now_ms = now_ms

    async def put(self, document: str, features: str, note: str, over: int | None = None) -> FeaturesInForce:
        """Put the checked features of a document in force, as a new version; the same text changes nothing.

        `over` is the version that it was written over. Raises `Conflict` when another is in force.
        """
        return await self._put(document, read_feature_set(features), features, note, over=over)

    async def find_earlier(self, to: int | None = None) -> tuple[FeaturesInForce, FeatureCall]:
        """Return an earlier version, and what is to be checked of it with the rules of now.

        Without `to`, the one before the version in force. Raises `NotFound`, `Conflict`.
        """
        newest = await self.newest_version()
        if to is None and newest < 2:
            raise Conflict("No other version was ever in force.", "never_active")
        earlier = await find_version(self._store, self._tenant, newest - 1 if to is None else to)
        if earlier.version.version == newest:
            raise Conflict("This version is in force.", "in_force", version=newest)
        call = FeatureCall(
            "", earlier.features.features, *await find_rules_and_serving(self._store, self._tenant)
        )
        return earlier, call

    async def go_back(self, to: FeaturesInForce, note: str, over: int | None = None) -> FeaturesInForce:
        """Put the set of an earlier version in force again, exactly, as a new version. Raises `Conflict`."""
        written = write_feature_set(to.features.features)
        return await self._put(to.document, to.features, written, note, over=over, origin=to.version.version)

    async def _put(
        self,
        document: str,
        features: FeatureSet,
        written: str,
        note: str,
        *,
        over: int | None = None,
        origin: int | None = None,
    ) -> FeaturesInForce:
        first = await self.newest_version()
        for _ in range(TRIES):
            setting = await find_setting(self._store, self._tenant)
            known = await find_in_force(self._store, self._tenant)
            newest = 0 if known is None else known.version.version
            if known is not None and (known.document, known.features.digest) == (document, features.digest):
                return known
            if newest != (first if over is None else over):
                raise _other_version(newest)
            statements = self._earlier_statements(known)
            number = newest + 1 + len(statements)
            made = FeatureVersion(
                version=number,
                digest=features.digest,
                note=note,
                author=self._actor,
                origin=origin,
                created_at_ms=self._now_ms(),
                changes=find_changes(known.features if known is not None else None, features),
            )
            describe(
                subject=str(number),
                before=None if known is None else {"version": newest, "featureSet": known.features.digest},
                after={"version": number, "featureSet": features.digest, "note": note},
            )
            try:
                await self._store.write(
                    *models_sql.demand_setting(setting),
                    *statements,
                    feature_version_sql.insert_feature_version(self._tenant, made, document, written),
                    feature_version_sql.forget_older_versions(self._tenant, number),
                    *features_statements(msgspec.structs.replace(setting, features=written), made),
                )
            except Clash:
                raise _other_version(await self.newest_version()) from None
            except Lost:
                continue  # A model came into service meanwhile, or somebody put other features.
            return FeaturesInForce(made, document, features)
        raise changed_meanwhile()

    async def newest_version(self) -> int:
        """Return the number of the version in force; 0 where there is none."""
        rows = await self._store.read(feature_version_sql.select_newest_version(self._tenant))
        return rows[0][0] if rows else 0

    def _earlier_statements(self, known: FeaturesInForce | None) -> list[Statement]:
        """Return what keeps the set that was recorded before versions were kept, as the first."""
        if known is None or known.version.version:
            return []
        first = msgspec.structs.replace(_earlier(1, known.features), created_at_ms=self._now_ms())
        written = write_feature_set(known.features.features)
        return [feature_version_sql.insert_feature_version(self._tenant, first, known.document, written)]


def features_statements(changed: ModelSetting, made: FeatureVersion) -> list[Statement]:
    """Return what stores a setting with other features and has every process see it."""
    tenant = changed.tenant
    return [
        models_sql.save_setting(changed),
        note_change(models_sql.AREA, tenant, "features", made.created_at_ms),
        note_change(DECIDING.area, tenant, "features", made.created_at_ms),
    ]


def _other_version(newest: int) -> Conflict:
    said = f"Version {newest} is in force by now" if newest else "No version is in force"
    return Conflict(
        f"{said}; look at what it changed and write over it.", "changed_meanwhile", version=newest
    )
