"""The door of rule quality."""

from typing import Final

from vettance.quality.answers import QualityAnswer, QualityQuery, quality_answer
from vettance.quality.quality_desk import QualityDesk
from vettance.tenants.key_scope import KeyScope
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply, reached_by

_TAG: Final = "Rules"


class QualityDoors:
    """Answers what each rule is worth."""

    def __init__(self, desk: QualityDesk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        offered = (
            Route(
                "GET",
                "/api/v1/rules/quality",
                self.quality,
                "What each fraud rule is worth",
                _TAG,
                query=QualityQuery,
                answers=QualityAnswer,
            ),
        )
        return reached_by(offered, KeyScope.RULES)

    async def quality(self, call: Call) -> RouteReply:
        """GET /rules/quality."""
        query = read_query(call.query_string, QualityQuery)
        report = await self._desk.report(call.tenant.id, query.moment_from, query.moment_to)
        return RouteReply(quality_answer(report))
