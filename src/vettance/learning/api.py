"""The doors of models: which there are, and the card of each."""

from typing import Final

from vettance.db.engine import Store
from vettance.errors import NotFound
from vettance.learning.answers import ModelAnswer, ModelPage, model_answer
from vettance.learning.change_models import find_setting
from vettance.models import sql
from vettance.models.sql import StoredModel
from vettance.tenants.key_scope import KeyScope
from vettance.web.paging import PageQuery, bad_cursor
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply, reached_by

_TAG: Final = "Models"
_ROOT: Final = "/api/v1/models"
_VERSION_MAX: Final = 2**31 - 1


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
        said = call.path["version"]
        if not (said.isascii() and said.isdigit()) or int(said[:12]) > _VERSION_MAX:
            raise NotFound
        rows = await self._store.read(sql.select_model(call.tenant.id, int(said[:12])))
        if not rows:
            raise NotFound
        stored = StoredModel(*rows[0])
        setting = await find_setting(self._store, call.tenant.id)
        return RouteReply(
            model_answer(setting, stored.version, stored.card, stored.created_at_ms, whole=True)
        )
