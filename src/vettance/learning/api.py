"""The doors of models: which there are, the card of each, and the features that they are made from."""

from typing import Final, TypeVar

import msgspec

from vettance.audit.act import leave_out
from vettance.db.engine import Store
from vettance.errors import NotFound, Unprocessable
from vettance.governance.check_documents import DocumentChecker
from vettance.governance.checked_features import CheckedFeatures, FeatureCall
from vettance.learning.answers import ModelAnswer, ModelPage, model_answer
from vettance.learning.change_features import (
    FeaturesInForce,
    FeatureSteps,
    feature_call,
    find_in_force,
    find_version,
)
from vettance.learning.change_models import find_setting
from vettance.learning.feature_answers import (
    FeatureRollbackBody,
    FeatureSetAnswer,
    FeatureSetBody,
    FeatureVersionAnswer,
    FeatureVersionPage,
    PutFeaturesAnswer,
    feature_fault,
    set_members,
    version_members,
)
from vettance.models import feature_version_sql, sql
from vettance.models.feature_set import read_feature_set
from vettance.models.feature_version import FeatureVersion, feature_version_of, find_changes
from vettance.models.own_features import own_names
from vettance.models.sql import StoredModel
from vettance.tenants.key_scope import KeyScope
from vettance.web.paging import PageQuery, bad_cursor
from vettance.web.path_version import VERSION_MAX, version_in_path
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply, reached_by
from vettance.wire.body import read_body
from vettance.wire.numbers import read_whole
from vettance.wire.payload import JSON, Faults

_TAG: Final = "Models"
_ROOT: Final = "/api/v1/models"
_FEATURES: Final = f"{_ROOT}/features"
#: What is answered where nothing is recorded yet.
_NO_VERSION: Final = FeatureVersion(0, "", "No features are recorded yet.", "", None, 0, ())

_BodyStruct = TypeVar("_BodyStruct", bound=msgspec.Struct)


class ModelDoors:
    """Answers what is known of the models of a tenant."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        offered = (
            Route("GET", _ROOT, self.page, "Models of the tenant", _TAG, query=PageQuery, answers=ModelPage),
            Route(
                "GET",
                f"{_ROOT}/{{version}}",
                self.one,
                "One model with its card",
                _TAG,
                answers=ModelAnswer,
                refusals=(404,),
            ),
        )
        return reached_by(offered, KeyScope.RULES)

    async def page(self, call: Call) -> RouteReply:
        """GET /models."""
        query, tenant = read_query(call.query_string, PageQuery), call.tenant.id
        rows = await self._store.read(sql.select_models(tenant))
        if not query.descending:
            rows.reverse()
        start = query.offset
        if query.cursor is not None:
            places = [place for place, row in enumerate(rows) if str(row[0]) == query.cursor]
            if not places:
                raise bad_cursor()
            start = places[0] + 1
        end = start + query.limit
        setting = await find_setting(self._store, tenant)
        data = [model_answer(setting, *row, whole=False) for row in rows[start:end]]
        following = str(rows[end - 1][0]) if end < len(rows) else None
        return RouteReply(ModelPage.of(query, data, len(rows), following))

    async def one(self, call: Call) -> RouteReply:
        """GET /models/{version}."""
        rows = await self._store.read(sql.select_model(call.tenant.id, version_in_path(call)))
        if not rows:
            raise NotFound
        stored = StoredModel(*rows[0])
        setting = await find_setting(self._store, call.tenant.id)
        return RouteReply(
            model_answer(setting, stored.version, stored.card, stored.created_at_ms, whole=True)
        )


class FeatureDoors:
    """Shows and changes the features that models of a tenant are made from."""

    def __init__(self, store: Store, checker: DocumentChecker) -> None:
        self._store = store
        self._checker = checker

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        versions = f"{_FEATURES}/versions"
        offered = (
            Route(
                "GET", _FEATURES, self.in_force, "The feature set in force", _TAG, answers=FeatureSetAnswer
            ),
            Route(
                "PUT",
                _FEATURES,
                self.put,
                "Check features of your own, and have them recorded",
                _TAG,
                takes=FeatureSetBody,
                answers=PutFeaturesAnswer,
                refusals=(409, 422),
            ),
            Route(
                "GET",
                versions,
                self.versions,
                "Versions of the feature set",
                _TAG,
                query=PageQuery,
                answers=FeatureVersionPage,
            ),
            Route(
                "GET",
                f"{versions}/{{version}}",
                self.version,
                "One version of the feature set",
                _TAG,
                answers=FeatureSetAnswer,
                refusals=(404,),
            ),
            Route(
                "POST",
                f"{_FEATURES}/rollback",
                self.roll_back,
                "Go back to an earlier version of the feature set",
                _TAG,
                takes=FeatureRollbackBody,
                may_lack_body=True,
                answers=FeatureSetAnswer,
                status=201,
                refusals=(404, 409, 422),
                idempotent=True,
            ),
        )
        return reached_by(offered, KeyScope.RULES)

    async def in_force(self, call: Call) -> RouteReply:
        """GET /models/features."""
        found = await find_in_force(self._store, call.tenant.id)
        if found is None:
            return RouteReply(FeatureSetAnswer(**version_members(_NO_VERSION), **set_members("", (), ())))
        return RouteReply(_set_answer(found))

    async def put(self, call: Call) -> RouteReply:
        """PUT /models/features."""
        body = _read(call, FeatureSetBody)
        tenant, steps = call.tenant.id, self._steps(call)
        if body.dry_run:
            leave_out()
        # Before the check, which takes time: who puts meanwhile is not written over.
        over = body.over if body.over is not None else await steps.newest_version()
        checked = await self._check(tenant, await feature_call(self._store, tenant, body.document))
        faults = [feature_fault(fault) for fault in checked.faults]
        if body.dry_run:
            known = await find_in_force(self._store, tenant)
            features = read_feature_set(checked.features)
            changes = find_changes(None if known is None else known.features, features)
            version = 0 if known is None else known.version.version
            would = FeatureVersion(version, features.digest, body.note, "", None, 0, changes)
            shown = FeaturesInForce(would, body.document, features)
        else:
            shown = await steps.put(body.document, checked.features, body.note, over)
        members = {**version_members(shown.version), **_members_of(shown)}
        return RouteReply(PutFeaturesAnswer(**members, dry_run=body.dry_run, faults=faults))

    async def versions(self, call: Call) -> RouteReply:
        """GET /models/features/versions."""
        query, tenant = read_query(call.query_string, PageQuery), call.tenant.id
        beyond = read_whole(query.cursor, 1, VERSION_MAX) if query.cursor is not None else None
        if query.cursor is not None and beyond is None:
            raise bad_cursor()
        total = (await self._store.read(feature_version_sql.count_versions(tenant)))[0][0]
        rows = await self._store.read(
            feature_version_sql.select_version_page(
                tenant, beyond, query.limit + 1, query.offset, descending=query.descending
            )
        )
        found = [feature_version_of(row) for row in rows[: query.limit]]
        following = str(found[-1].version) if len(rows) > query.limit else None
        data = [FeatureVersionAnswer(**version_members(one)) for one in found]
        return RouteReply(FeatureVersionPage.of(query, data, total, following))

    async def version(self, call: Call) -> RouteReply:
        """GET /models/features/versions/{version}."""
        return RouteReply(_set_answer(await find_version(self._store, call.tenant.id, version_in_path(call))))

    async def roll_back(self, call: Call) -> RouteReply:
        """POST /models/features/rollback."""
        body, steps = _read(call, FeatureRollbackBody), self._steps(call)
        over = body.over if body.over is not None else await steps.newest_version()
        earlier, asked = await steps.find_earlier(body.to)
        await self._check(call.tenant.id, asked)
        return RouteReply(_set_answer(await steps.go_back(earlier, body.note, over)), 201)

    def _steps(self, call: Call) -> FeatureSteps:
        return FeatureSteps(self._store, call.tenant.id, call.actor or call.key.id)

    async def _check(self, tenant: str, asked: FeatureCall) -> CheckedFeatures:
        """Return what the check found. Raises `Unprocessable` with the place of each fault."""
        checked = await self._checker.check_features(tenant, asked)
        if not checked.is_good:
            errors = [fault for fault in checked.faults if not fault.warning]
            details = {fault.where: fault.message for fault in reversed(errors)}
            faults = [feature_fault(fault) for fault in checked.faults]
            raise Unprocessable("The feature set does not pass; see details.", {**details, "faults": faults})
        return checked


def _set_answer(found: FeaturesInForce) -> FeatureSetAnswer:
    return FeatureSetAnswer(**version_members(found.version), **_members_of(found))


def _members_of(found: FeaturesInForce) -> JSON:
    return set_members(found.document, found.features.features, own_names(found.document))


def _read(call: Call, shape: type[_BodyStruct]) -> _BodyStruct:
    """Read the body. Raises `Invalid` (400) or `Unprocessable` (422) naming every fault."""
    faults = Faults()
    said = read_body(call.json() if call.body else {}, shape, faults)
    faults.raise_any()
    return said
