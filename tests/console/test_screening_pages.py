"""The page of a screening says what officers have decided since, and offers only what can be done."""

import re

import pytest

from tests.console.visitor import visitor_of
from tests.live import Caller, Service

DESK = "/console/aml/screen"


@pytest.fixture(scope="module")
def bank(service: Service) -> Caller:
    service.cli("watchlist", "import", "--source", "sample", "--json")
    caller = Caller(service, *service.new_tenant("Screening bank"))
    service.cli("tenant", "set", caller.id, "--aml", "on", "--json")
    service.wait_for(lambda: caller.get("/api/v1/aml/alerts").status == 200, seconds=10)
    return caller


def test_a_match_that_is_not_the_same_is_offered_no_second_time(service: Service, bank: Caller) -> None:
    ann = visitor_of(service, bank.id, "analyst")
    first, second = (
        ann.submit(DESK, DESK, inputName="Sergey Lavrov", externalId=one).location for one in ("s-1", "s-2")
    )
    page = ann.get(first)
    entities = re.findall(r'name="entity" value="([^"]+)"', page.text)
    assert entities
    assert "decided:" not in page.words
    for entity in entities:
        done = ann.submit(first, f"{first}/dismiss", entity=entity, notes="Born elsewhere.")
        assert done.status == 303
    assert "the case is closed as a false alarm" in ann.get(done.location).words
    decided = ann.get(first)
    assert "decided: False alarm" in decided.words
    assert "not the same, remembered" in decided.words
    assert 'name="entity"' not in decided.text
    # Another screening of the same id leads to this one; that of another id is as it was.
    again = ann.submit(DESK, DESK, inputName="Sergey Lavrov", externalId="s-1").location
    assert f'href="{first}"' in ann.get(again).text
    assert 'name="entity"' in ann.get(second).text
    # Where two officers decide, one alone is led to the case.
    service.cli("aml", "set", "--tenant", bank.id, "--four-eyes", "on", "--json")
    held = ann.get(second)
    assert 'name="entity"' not in held.text
    assert "Two officers decide here" in held.words
