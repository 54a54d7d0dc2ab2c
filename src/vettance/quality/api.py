"""The door of rule quality, the same for every kind of rules."""

from vettance.quality.answers import QualityQuery
from vettance.quality.quality_desk import QualityDesk
from vettance.quality.quality_kind import FRAUD_QUALITY, QualityKind
from vettance.tenants.key_scope import KeyScope
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply, reached_by


class QualityDoors:
    """Answers what each rule of one kind is worth."""

    def __init__(self, desk: QualityDesk, kind: QualityKind = FRAUD_QUALITY) -> None:
        self._desk = desk
        self._kind = kind

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        kind = self._kind
        offered = (
            Route(
                "GET",
                kind.path,
                self.quality,
                kind.summary,
                kind.tag,
                query=QualityQuery,
                answers=kind.answers,
                product=kind.product,
            ),
        )
        return reached_by(offered, KeyScope.RULES)

    async def quality(self, call: Call) -> RouteReply:
        """GET /rules/quality, and the same below /aml."""
        query = read_query(call.query_string, QualityQuery)
        report = await self._desk.report(call.tenant.id, query.moment_from, query.moment_to)
        return RouteReply(self._kind.answer(report))
