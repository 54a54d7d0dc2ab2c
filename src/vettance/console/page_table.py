"""The table of pages: every page file is named here once."""

from collections.abc import Iterable, Mapping
from typing import Final

from vettance.console import (
    aml_case_page,
    aml_cases_page,
    aml_event_page,
    audit_page,
    backtests_page,
    bulk_page,
    decision_page,
    decisions_page,
    enter_page,
    entity_page,
    features_page,
    label_forms,
    lists_page,
    models_page,
    overview_page,
    profile_page,
    provider_page,
    queue_page,
    reports_page,
    reveal_page,
    review_forms,
    rule_page,
    rules_page,
    screening_page,
    search_page,
    second_factor_page,
    session_page,
    settings_page,
    sign_in_page,
    suggestions_page,
    team_page,
    webhooks_page,
)
from vettance.console.page import ConsolePage
from vettance.errors import MethodNotAllowed
from vettance.web.routing import Access, Call, Route, RouteReply, RouteTable

#: The files that hold pages, each with a table `PAGES`.
_FILES: Final = (
    overview_page,
    decisions_page,
    decision_page,
    label_forms,
    entity_page,
    session_page,
    search_page,
    lists_page,
    models_page,
    features_page,
    suggestions_page,
    sign_in_page,
    provider_page,
    enter_page,
    second_factor_page,
    profile_page,
    settings_page,
    team_page,
    audit_page,
    queue_page,
    review_forms,
    bulk_page,
    aml_cases_page,
    aml_case_page,
    aml_event_page,
    screening_page,
    webhooks_page,
    reports_page,
    reveal_page,
    rules_page,
    rule_page,
    backtests_page,
)

PAGES: Final[tuple[ConsolePage, ...]] = tuple(page for file in _FILES for page in file.PAGES)


async def _never(_call: Call) -> RouteReply:
    raise NotImplementedError("pages are not answered by the API's edge")


class PageTable:
    """Finds the page of a method and a raw path, by the rules of `web.routing`."""

    def __init__(self, pages: Iterable[ConsolePage] = PAGES) -> None:
        self.pages = tuple(pages)
        self._by_row = {(page.method, page.path): page for page in self.pages}
        self._routes = RouteTable(
            tuple(
                Route(page.method, page.path, _never, "", "", access=Access.NONE, in_openapi=False)
                for page in self.pages
            )
        )

    def find(self, method: str, raw_path: bytes) -> tuple[ConsolePage, Mapping[str, str]] | None:
        """Return the page and its parameters; None when no page has the path. Raises `MethodNotAllowed`."""
        match = self._routes.find(method, raw_path)
        if match is None or match.unreadable:
            return None
        if match.route is None:
            raise MethodNotAllowed(match.allow)
        return self._by_row[match.route.method, match.route.path], match.parameters

    def page_at(self, path: str) -> ConsolePage | None:
        """Return the page that is shown at a path without parameters."""
        return self._by_row.get(("GET", path))
