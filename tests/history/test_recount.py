"""Every list, statistic and counter equals a naive recount over the raw decisions, wherever they stand."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.past import DAY_MS, KEYS, MADE, START_MS, Archive, Asked, Past, wants
from vettance.db.engine import Statement
from vettance.decisions.decision import LEVELS, Outcome
from vettance.events.event import Category
from vettance.history.decision_search import PageEnd
from vettance.history.result_page import Order
from vettance.history.search_criteria import criteria

MOMENTS = st.integers(-2 * DAY_MS, 12 * DAY_MS).map(lambda offset: START_MS + offset) | st.sampled_from(
    [START_MS - DAY_MS, START_MS, START_MS + 60_000, START_MS + 61_000, START_MS + DAY_MS]
)
TEXTS = st.sampled_from(["a", "b", "Ab1", "x@mail.example", " X@mail.example", "none such", "4711"])
CODES = st.sampled_from(
    ["VELOCITY", "velocity_ip", " A1 ", "VELOCITY%IP", "A", "A1 VELOCITY", "NEW_DEVICE A1", "", " ", "-"]
)
SINGLE = st.one_of(
    st.fixed_dictionaries({"decision": st.sampled_from(Outcome)}),
    st.fixed_dictionaries({"risk_level": st.sampled_from(LEVELS)}),
    st.fixed_dictionaries({"event_category": st.sampled_from(Category)}),
    st.fixed_dictionaries({"min_score": st.sampled_from([0, 1, 50, 100])}),
    st.fixed_dictionaries({"max_score": st.sampled_from([0, 50, 99, 100])}),
    st.fixed_dictionaries({"event_name": st.sampled_from(["user.login", "a", "other"])}),
    st.fixed_dictionaries({"customer": TEXTS}),
    st.fixed_dictionaries({"device": TEXTS}),
    st.fixed_dictionaries({"country": st.sampled_from(["DE", "b"])}),
    st.fixed_dictionaries({"session_id": st.sampled_from(["s1", "a"])}),
    st.fixed_dictionaries({"reason_code": CODES}),
    st.fixed_dictionaries({"from_ms": MOMENTS}),
    st.fixed_dictionaries({"to_ms": MOMENTS}),
)
MOMENT = st.fixed_dictionaries({"moment": st.sampled_from(["evaluated_at_ms", "received_at_ms"])})
WANTED = st.tuples(MOMENT, st.lists(SINGLE, max_size=3)).map(
    lambda parts: {name: value for part in (parts[0], *parts[1]) for name, value in part.items()}
)
SEARCHES = (
    st.sampled_from(["a", "b1", "mail", "x@mail", "login", "velocity_ip", "192.0.2.", "pay", "zzz"])
    | (
        st.sampled_from(
            [
                "ß",
                "ss",
                "öß",
                "äö ss",
                "evt_",
                "t_01",
                "_%",
                '"q"',
                "471",
                "4711",
                "019b",
                "b7",
                "000",
                "7000",
                "0",
                "1f",
                "0e0",
            ]
        )
    )
).map(str.casefold)
LIVED = st.sampled_from([0, 1, 5, 12, 24, 36]).flatmap(
    lambda size: st.lists(st.tuples(st.sampled_from([0, 0, 0, 1]), MADE), min_size=size, max_size=size)
)
SEALS = st.lists(st.integers(0, 35), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    made = Archive(tmp_path_factory.mktemp("archive"))
    yield made
    made.close()


async def listed(
    archive: Archive, tenant: str, wanted: Asked, order: Order, limit: int, *, descending: bool
) -> tuple[list[str], int]:
    """Walk through a list, by pages and by cursors, and see that both tell the same."""
    asked = criteria(**wanted)
    places = Statement("SELECT seq, id FROM decision WHERE tenant = ?", (tenant,))
    names = dict(await archive.store.read(places))
    by_page: list[int] = []
    by_cursor: list[int] = []
    after: PageEnd | None = None
    for number in range(1000):
        page = await archive.finder.find(tenant, asked, order, number * limit, limit, descending=descending)
        turned = await archive.finder.find(tenant, asked, order, 0, limit, after, descending=descending)
        by_page += page.seqs
        by_cursor += turned.seqs
        assert page.total == turned.total
        assert page.more == turned.more == (page.end is not None)
        if not page.more:
            break
        after = turned.end
    assert by_page == by_cursor
    return [names[seq] for seq in by_page], page.total


def expected(past: list[Past], wanted: Asked, order: Order, *, descending: bool) -> list[str]:
    kept = [one for one in past if wants(one, wanted)]
    return [one.id for one in sorted(kept, key=KEYS[order], reverse=descending)]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(LIVED, SEALS, WANTED, st.sampled_from(Order), st.booleans(), st.integers(1, 6))
def test_a_list_is_what_filtering_and_sorting_by_hand_gives(
    archive: Archive, lived, seals, wanted, order, descending, limit
) -> None:
    tenants = [archive.tenant(), archive.tenant()]

    async def scene() -> None:
        pasts = await archive.live(tenants, lived, seals)
        for tenant, past in zip(tenants, pasts, strict=True):
            ids, total = await listed(archive, tenant, wanted, order, limit, descending=descending)
            assert ids == expected(past, wanted, order, descending=descending)
            assert total == len(ids)
            outcomes = Counter(one.made.outcome for one in past if wants(one, wanted))
            assert await archive.finder.outcomes(tenant, criteria(**wanted)) == {
                outcome: outcomes[outcome] for outcome in Outcome
            }

    archive.runner.run(scene())


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(LIVED, SEALS, SEARCHES, st.integers(0, 35), st.integers(0, 33), st.integers(1, 33))
def test_a_search_finds_what_looking_into_every_text_finds(
    archive: Archive, lived, seals, search, number, start, length
) -> None:
    tenants = [archive.tenant(), archive.tenant()]

    async def scene() -> None:
        pasts = await archive.live(tenants, lived, seals)
        everything = [past for one in pasts for past in one]
        searches = [search, "velo"]
        if everything:
            an_id = everything[number % len(everything)].id
            searches += [an_id, an_id[start : start + length], an_id[:10], an_id[-length:]]
        for tenant, past in zip(tenants, pasts, strict=True):
            for text in searches:
                wanted = {"search": text}
                ids, total = await listed(archive, tenant, wanted, Order.EVALUATED, 9, descending=True)
                assert ids == expected(past, wanted, Order.EVALUATED, descending=True), text
                assert total == len(ids)

    archive.runner.run(scene())


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(LIVED, LIVED, SEALS, st.none() | MOMENTS, st.none() | MOMENTS)
def test_statistics_are_what_counting_by_hand_gives(
    archive: Archive, lived, later, seals, from_ms, to_ms
) -> None:
    tenants = [archive.tenant(), archive.tenant()]

    async def compare(pasts: list[list[Past]]) -> None:
        for tenant, past in zip(tenants, pasts, strict=True):
            inside = [
                one
                for one in past
                if (from_ms is None or one.occurred_at_ms >= from_ms)
                and (to_ms is None or one.occurred_at_ms < to_ms)
            ]
            counts = await archive.counter.count(tenant, from_ms, to_ms)
            outcomes = Counter(one.made.outcome for one in inside)
            assert counts.totals.evaluated == len(inside)
            assert (counts.totals.review, counts.totals.block) == (outcomes["REVIEW"], outcomes["BLOCK"])
            by_outcome = await archive.counter.outcomes(tenant, from_ms, to_ms)
            assert by_outcome == {one: outcomes[one] for one in Outcome}
            assert counts.totals.score_sum == sum(one.made.score for one in inside)
            assert counts.codes == Counter(code for one in inside for code in one.made.reasons)
            width_ms = counts.bucket_s * 1000
            starts = Counter(one.occurred_at_ms // width_ms * counts.bucket_s for one in inside)
            assert {start: count.evaluated for start, count in counts.buckets.items()} == starts
            uniques = (await archive.counter.both(tenant, from_ms, to_ms))[1]
            customers = {one.made.customer_id or one.made.email for one in inside} - {None}
            devices = {one.made.fingerprint or one.made.device_id for one in inside} - {None}
            assert uniques == (len(customers), len(devices))
            brief, again = await archive.counter.both(tenant, from_ms, to_ms)
            assert (brief.totals, again) == (counts.totals, uniques)

    async def scene() -> None:
        before = await archive.live(tenants, lived, seals)
        await compare(before)
        # Asked again after more decisions of the same days, so that nothing kept from before is believed.
        after = await archive.live(tenants, later, seals)
        await compare([[*old, *new] for old, new in zip(before, after, strict=True)])

    archive.runner.run(scene())


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(LIVED, SEALS, st.integers(0, 35))
def test_entities_are_linked_as_going_through_every_decision_tells(
    archive: Archive, lived, seals, number
) -> None:
    tenants = [archive.tenant(), archive.tenant()]

    def known_by(past: Past, kind: str) -> str | None:
        made = past.made
        return {
            "customer": made.customer_id or made.email,
            "device": made.fingerprint or made.device_id,
            "ip": made.ip,
            "email": made.email,
            "session": made.session_id,
        }[kind]

    async def scene() -> None:
        pasts = await archive.live(tenants, lived, seals)
        for tenant, past in zip(tenants, pasts, strict=True):
            if not past:
                continue
            one = past[number % len(past)]
            kinds = ("customer", "device", "ip", "email", "session")
            entities = {kind: value for kind in kinds if (value := known_by(one, kind)) is not None}
            links = await archive.linker.links(tenant, entities)
            for kind, value in entities.items():
                same = [other for other in past if known_by(other, kind) == value]
                assert links[kind].events == len(same)
                assert links[kind].first_at_ms == min(other.occurred_at_ms for other in same)
                assert links[kind].last_at_ms == max(other.occurred_at_ms for other in same)
                span = await archive.linker.span(tenant, kind, value)
                assert span == (links[kind].first_at_ms, links[kind].last_at_ms)
                assert await archive.linker.span(tenant, kind, f"not {value}") is None
                assert links[kind].others == {
                    other_kind: len({known_by(other, other_kind) for other in same} - {None})
                    for other_kind in ("customer", "device")
                    if other_kind != kind
                }

    archive.runner.run(scene())
