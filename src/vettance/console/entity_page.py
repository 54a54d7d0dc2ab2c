"""A customer, device, address or e-mail: what is known of it, what it was seen with, what to do about it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from vettance.console import svg_graph
from vettance.console.decisions_page import decision_row, entity_url
from vettance.console.label_forms import LABELS
from vettance.console.page import READERS, WORKERS, ConsolePage, View, Visit, url_of
from vettance.console.review_forms import blind_entries, blind_reviews
from vettance.console.svg_charts import ChartPoint, sparkline, time_series
from vettance.console.words import Words
from vettance.decisions.decision import Outcome
from vettance.errors import NotFound
from vettance.feedback.label import Feedback
from vettance.history.entity_graph import GRAPH_KINDS, EntityGraph, EntityNode, Neighbours, ranked
from vettance.history.search_criteria import criteria
from vettance.lists import sql as lists_sql
from vettance.lists.entry import EntryType, ListEntry, canonical_value, values_holding
from vettance.lists.entry_bodies import read_value
from vettance.reviews.review import Review

_SHOWN: Final = 50
_NAMED: Final = 12
_EDGES: Final = 60
KIND_LABELS: Final = {
    "customer": Words("Customer"),
    "device": Words("Device"),
    "ip": Words("IP address"),
    "email": Words("E-mail"),
}
#: How the list of decisions asks for a value of each kind, and the type of list entry that it can be.
_FILTERS: Final = {"customer": "customer", "device": "device", "ip": "ip", "email": "customer"}
_OUTCOMES: Final = ((Outcome.ALLOW, "approve"), (Outcome.REVIEW, "review"), (Outcome.BLOCK, "deny"))
_ENTRY_TYPES: Final = {"device": EntryType.DEVICE, "ip": EntryType.IP, "email": EntryType.EMAIL}


async def entity(visit: Visit) -> View:
    """GET /console/entities/{kind}/{value}."""
    kind = visit.path["kind"]
    if kind not in KIND_LABELS:
        raise NotFound
    value = visit.sight.value(kind, visit.path["value"])
    wanted: dict[str, Any] = {_FILTERS[kind]: value}
    parts, tenant = visit.parts, visit.tenant.id
    found, outcomes = await asyncio.gather(
        visit.ask("GET", "/api/v1/decisions", {**wanted, "limit": _SHOWN}),
        parts.finder.outcomes(tenant, criteria(**wanted)),
    )
    node = EntityNode(kind, value)
    entries, (neighbours, graph), seen = await asyncio.gather(
        _entries(visit, kind, value),
        parts.neighbours.around(tenant, node),
        parts.linker.span(tenant, kind, value),
    )
    if not found["total"] and not entries:
        raise NotFound
    listable = _listable(kind, value, neighbours)
    if kind == "customer":
        entries = await _entries_with(visit, listable)
    shown = [one["id"] for one in found["data"]]
    hidden, made_blind, feedback = await asyncio.gather(
        blind_reviews(visit, shown),
        blind_entries(visit, [one.created_at_ms for one in entries]),
        parts.explainer.feedback(tenant, shown),
    )
    # The labels of a full graph take milliseconds to place.
    pictures = await asyncio.to_thread(_pictures, visit, found["data"], graph)
    values = {
        "kind": kind,
        "label": KIND_LABELS[kind],
        "text": visit.sight.text(value),
        "total": found["total"],
        "counts": [(word, outcomes[outcome]) for outcome, word in _OUTCOMES],
        "seen": seen,
        "rows": [decision_row(visit, one) for one in found["data"]],
        "all_url": url_of("/console/decisions", **{_FILTERS[kind]: visit.sight.name(_FILTERS[kind], value)}),
        "entries": [_entry(visit, one, kind, value) for one in entries if one.id not in made_blind],
        "is_entry_hidden": any(one.id in made_blind for one in entries),
        "labels_given": _labels([one for one in feedback if not _is_hidden(one, hidden)]),
        "labels": LABELS,
        "can_act": visit.may(*WORKERS),
        "listable": listable,
        "here": entity_url(visit, kind, value),
        "seen_with": _seen_with(visit, neighbours),
        **pictures,
    }
    return View("entity.html", values, title=f"{KIND_LABELS[kind]} {visit.sight.text(value)}")


async def _entries(visit: Visit, kind: str, value: str) -> list[ListEntry]:
    """Return the list entries that a value matches; an address is in ranges, too."""
    entry_type = _ENTRY_TYPES.get(kind)
    return [] if entry_type is None else await entries_matching(visit, entry_type, value)


async def entries_matching(visit: Visit, entry_type: EntryType, value: str) -> list[ListEntry]:
    """Return the list entries of a type that a value matches; none for what is no such value."""
    kept, fault = read_value(entry_type, value)
    if kept is None or fault is not None:
        return []
    values = values_holding(kept) if entry_type is EntryType.IP else [kept]
    return await _entries_of(visit, entry_type, values)


async def _entries_of(visit: Visit, entry_type: EntryType, values: Sequence[str]) -> list[ListEntry]:
    asked = lists_sql.select_by_values(visit.tenant.id, entry_type, values, visit.now_ms)
    return [lists_sql.entry_of(row) for row in await visit.parts.store.read(asked)]


async def _entries_with(visit: Visit, listable: Sequence[tuple[str, str, str]]) -> list[ListEntry]:
    """Return the list entries of what can be put on a list from here, which is how a customer is on one."""
    by_type: dict[EntryType, list[str]] = {}
    for kind, _, value in listable:
        kept = canonical_value(EntryType(kind), value)
        if kept is not None:
            by_type.setdefault(EntryType(kind), []).append(kept)
    found = await asyncio.gather(*(_entries_of(visit, kind, values) for kind, values in by_type.items()))
    return [entry for several in found for entry in several]


def _entry(visit: Visit, entry: ListEntry, kind: str, value: str) -> dict[str, Any]:
    """Return a list entry; `about` names the value where it is another than that of the page."""
    is_range = entry.type is EntryType.IP and "/" in entry.value
    is_same = kind != "customer" and canonical_value(entry.type, value) == entry.value
    return {
        **msgspec.structs.asdict(entry),
        "about": "" if is_same else entry.value if is_range else visit.sight.text(entry.value),
    }


def _is_hidden(one: Feedback, hidden: Mapping[str, Review]) -> bool:
    """Tell whether a label came with the settlement of a review that waits for its second look, or since."""
    review = hidden.get(one.target)
    return review is not None and one.updated_at_ms >= (review.settled_at_ms or 0)


def _labels(feedback: list[Any]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for one in feedback:
        counts[one.label.value] = counts.get(one.label.value, 0) + 1
    words = {key.value: text for key, text in LABELS}
    return [(words[key], count) for key, count in sorted(counts.items(), key=lambda item: -item[1])]


def _listable(kind: str, value: str, neighbours: Neighbours) -> list[tuple[str, str, str]]:
    """Return what can be put on a list from here: a customer is blocked by the address and the devices."""
    if kind in _ENTRY_TYPES:
        return [(_ENTRY_TYPES[kind].value, KIND_LABELS[kind], value)]
    found = [node for node in ranked(neighbours.events) if node.kind in ("email", "device")][:4]
    return [(_ENTRY_TYPES[node.kind].value, KIND_LABELS[node.kind], node.value) for node in found]


def _seen_with(visit: Visit, neighbours: Neighbours) -> list[dict[str, Any]]:
    """Return the most frequent values of each kind."""
    shown = []
    for kind in GRAPH_KINDS:
        nodes = [node for node in ranked(neighbours.events) if node.kind == kind]
        if nodes:
            cells = [
                {
                    "text": visit.sight.text(node.value),
                    "url": entity_url(visit, kind, node.value),
                    "events": neighbours.events[node],
                }
                for node in nodes[:_NAMED]
            ]
            shown.append({"label": KIND_LABELS[kind], "cells": cells, "count": neighbours.counts[kind]})
    return shown


def _pictures(visit: Visit, decisions: list[dict[str, Any]], graph: EntityGraph) -> dict[str, Any]:
    """Return the pictures with the words and numbers that say the same."""
    scores = [ChartPoint(visit.show.day(one["evaluatedAt"]), one["riskScore"]) for one in reversed(decisions)]
    most = max((point.value for point in scores), default=0)
    shown = visit.show.count(len(scores), "decision")
    text = f"Risk scores of the last {shown}, oldest first; the highest is {most:g}."
    titles = {node: _short(visit.sight.text(node.value)) for node in graph.hops}
    urls = {node: entity_url(visit, node.kind, node.value) for node in graph.hops}
    count = len(graph.hops) - 1
    about = f"{visit.show.count(count, 'value')} within two steps, as the table beside it lists them."
    edges = [
        {
            "one": titles[edge.one],
            "one_url": urls[edge.one],
            "other": titles[edge.other],
            "other_url": urls[edge.other],
            "kind": f"{KIND_LABELS[edge.one.kind]} – {KIND_LABELS[edge.other.kind]}",
            "events": edge.events,
            "hub": graph.hubs.get(edge.other),
        }
        for edge in graph.edges[:_EDGES]
    ]
    return {
        "spark": sparkline([point.value for point in scores[-20:]], f"The last scores, up to {most:g}."),
        "risk": time_series(scores, (), text, f"highest score {most:g}") if len(scores) > 1 else "",
        "graph": svg_graph.draw(graph, titles, urls, about, visit.show) if count else "",
        "edges": edges,
        "left_out": graph.left_out,
    }


def _short(text: str) -> str:
    return text if len(text) <= 22 else f"{text[:12]}…{text[-6:]}"


PAGES: Final = (ConsolePage("GET", "/console/entities/{kind}/{value}", READERS, entity),)
