"""Navigation: the places of the console in their order, each shown to those who may go there."""

from typing import Final, NamedTuple

from vettance.console.page_table import PageTable
from vettance.console.words import Words
from vettance.people.role import Role


class NavigationItem(NamedTuple):
    """A place: the path of its page, its name, its icon in `icons.html`, and the group it is in."""

    path: str
    label: str
    icon: str
    group: str = ""


ITEMS: Final = (
    NavigationItem("/console/", Words("Overview"), "overview"),
    NavigationItem("/console/queue", Words("Queue"), "queue"),
    NavigationItem("/console/decisions", Words("Decisions"), "decisions"),
    NavigationItem("/console/lists", Words("Lists"), "lists"),
    NavigationItem("/console/rules", Words("Rules"), "rules"),
    NavigationItem("/console/models", Words("Models"), "models"),
    NavigationItem("/console/aml/alerts", Words("Alerts"), "alerts", "AML"),
    NavigationItem("/console/aml/cases", Words("Cases"), "cases", "AML"),
    NavigationItem("/console/aml/screen", Words("Screening"), "screening", "AML"),
    NavigationItem("/console/reports", Words("Reports"), "reports", Words("Operations")),
    NavigationItem("/console/webhooks", Words("Webhooks"), "webhooks", Words("Operations")),
    NavigationItem("/console/audit", Words("Audit log"), "audit", Words("Operations")),
    NavigationItem("/console/settings", Words("Settings"), "settings", Words("Operations")),
)


class NavigationGroup(NamedTuple):
    """Places under one heading."""

    label: str
    items: tuple[NavigationItem, ...]


def groups_for(roles: frozenset[Role], pages: PageTable, *, aml: bool) -> tuple[NavigationGroup, ...]:
    """Return the places that somebody with these roles may go to; those of AML where the product is on."""
    groups: dict[str, list[NavigationItem]] = {}
    for item in ITEMS:
        page = pages.page_at(item.path) if aml or item.group != "AML" else None
        if page is not None and not page.roles.isdisjoint(roles):
            groups.setdefault(item.group, []).append(item)
    return tuple(NavigationGroup(label, tuple(items)) for label, items in groups.items())


def current_item(path: str) -> str:
    """Return the path of the place that a page belongs to: the longest one that it begins with."""
    under = [item.path for item in ITEMS if path == item.path or path.startswith(f"{item.path}/")]
    return max(under, key=len, default="")
