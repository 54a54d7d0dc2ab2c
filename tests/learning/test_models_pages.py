"""The pages of models: looked at by those who know rules, steered by administrators."""

import random

from tests.console.visitor import visitor_of
from tests.learning.conftest import pay
from tests.live import Caller, Service

PATH = "/console/models"


def test_a_model_is_shown_with_its_card_and_steered(service: Service, learner: Caller) -> None:
    admin, analyst = (visitor_of(service, learner.id, role) for role in ("admin", "analyst"))
    champion = service.cli("model", "show", "--tenant", learner.id, "--json")["champion"]
    page = analyst.get(PATH)
    assert f"Model {champion} is in service, in shadow" in page.words
    assert "Train now" not in page.words
    one = analyst.get(f"{PATH}/{champion}")
    assert "Features that tell most" in one.words
    assert "Drift of the newest decisions" in one.words
    assert one.text.count('class="picture"') == 2
    assert analyst.get(f"{PATH}/77").status == 404
    assert admin.submit(PATH, f"{PATH}/setting", mode="active", may_block="on").status == 303
    setting = service.cli("model", "show", "--tenant", learner.id, "--json")
    assert (setting["mode"], setting["mayBlock"]) == ("active", True)
    assert admin.submit(PATH, f"{PATH}/setting", mode="wild").status == 422
    assert admin.submit(PATH, f"{PATH}/setting", mode="shadow").status == 303
    assert admin.submit(PATH, f"{PATH}/rollback").status == 303
    assert service.cli("model", "show", "--tenant", learner.id, "--json")["champion"] != champion
    assert admin.submit(f"{PATH}/{champion}", f"{PATH}/{champion}/promote").status == 303
    assert service.cli("model", "show", "--tenant", learner.id, "--json")["champion"] == champion
    log = service.rows(f"SELECT action FROM audit_entry WHERE tenant = '{learner.id}'")
    assert log


def test_a_decision_shows_what_the_model_made_of_it(service: Service, learner: Caller) -> None:
    auditor = visitor_of(service, learner.id, "auditor")
    draw = random.Random(2)

    def is_shown() -> bool:
        event, _ = pay(learner, 1_000, draw)
        return "% fraud, a score of" in auditor.get(f"/console/decisions/{event}").words

    service.wait_for(is_shown, seconds=10)
