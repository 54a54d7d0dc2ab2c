"""The table of searchable fields: what is stored by it stays readable, and a field can be added to it."""

import pytest

from tests.history.past import START_MS, Archive, Made
from vettance.db.engine import Statement
from vettance.decisions.searchable_fields import REASONS_BIT, SEARCHABLE_FIELDS
from vettance.history.compaction import Compactor
from vettance.history.result_page import Order
from vettance.history.search_criteria import criteria

#: Bits of `term.fields` that stores hold.
STORED_BITS = {
    "customer_id": 0,
    "email": 1,
    "device_id": 2,
    "fingerprint": 3,
    "ip": 4,
    "event_name": 5,
    "country": 6,
    "session_id": 7,
}


def test_the_bits_of_fields_are_those_that_stores_hold_and_each_is_given_once() -> None:
    bits = {field.column: field.term_bit for field in SEARCHABLE_FIELDS}
    assert {column: bits[column] for column in STORED_BITS} == STORED_BITS
    assert REASONS_BIT == 8
    assert len({*bits.values(), REASONS_BIT}) == len(bits) + 1


@pytest.mark.parametrize(("asked", "total"), [("DE", 1), ("de", 2), (" De", 1), ("FR", 0)])
@pytest.mark.parametrize("compacted", [0, 2])
def test_a_country_is_found_in_any_letter_case_and_an_older_one_as_it_was_sent(
    either: Archive, asked: str, total: int, compacted: int
) -> None:
    tenant = either.tenant()

    async def scene() -> None:
        for number, country in enumerate(("DE", "de")):
            await either.write(tenant, Made(country=country), START_MS + number)[1]
        assert await Compactor(either.store, chunk=2).compact(tenant, compacted) == compacted
        wanted = criteria(country=asked)
        found = await either.finder.find(tenant, wanted, Order.EVALUATED, 0, 9, descending=True)
        assert found.total == total

    either.runner.run(scene())


@pytest.mark.parametrize(("asked", "total"), [({"country": "DE"}, 1), ({"customer": "c"}, 3), ({}, 3)])
def test_segments_made_before_a_field_was_added_have_no_value_in_it(
    either: Archive, asked: dict[str, str], total: int
) -> None:
    tenant = either.tenant()

    async def scene() -> None:
        compactor = Compactor(either.store, chunk=2)
        made = Made(customer_id="c", country="DE")
        for number in range(2):
            await either.write(tenant, made, START_MS + number)[1]
        assert await compactor.compact(tenant, 2) == 2
        older = "DELETE FROM chunk_column WHERE name = 'country' AND chunk IN "
        await either.store.write(
            Statement(f"{older}(SELECT id FROM chunk WHERE tenant = ?)", (tenant,), tenant=tenant)
        )
        await either.write(tenant, made, START_MS + 2)[1]
        assert await compactor.compact(tenant, 1) == 1
        found = await either.finder.find(tenant, criteria(**asked), Order.EVALUATED, 0, 9, descending=True)
        assert found.total == total

    either.runner.run(scene())
