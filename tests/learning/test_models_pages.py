"""The pages of models: looked at by those who know rules, steered by administrators."""

import random

from tests.console.visitor import Visitor, visitor_of
from tests.learning.conftest import pay
from tests.live import Caller, Service

PATH = "/console/models"


def test_a_model_is_shown_with_its_card_and_steered(service: Service, learner: Caller) -> None:
    admin, analyst = (visitor_of(service, learner.id, role) for role in ("admin", "analyst"))
    champion = service.cli("model", "show", "--tenant", learner.id, "--json")["champion"]
    page = analyst.get(PATH)
    assert f"Model {champion} is in service, in shadow" in page.words
    assert f"Model in force Model {champion} In shadow." in analyst.get("/console/").words
    assert "Train now" not in page.words
    draw = random.Random(3)

    def has_decided() -> bool:
        pay(learner, 1_000, draw)
        return "It would change" in analyst.get(f"{PATH}/{champion}").words

    service.wait_for(has_decided, seconds=20)
    one = analyst.get(f"{PATH}/{champion}")
    assert "Features that tell most" in one.words
    assert "Drift of the newest decisions" in one.words
    assert one.text.count('class="picture"') == 2
    assert analyst.get(f"{PATH}/77").status == 404
    assert admin.submit(PATH, f"{PATH}/setting", mode="active", may_block="on").status == 303
    setting = service.cli("model", "show", "--tenant", learner.id, "--json")
    assert (setting["mode"], setting["mayBlock"]) == ("active", True)
    assert f"Model in force Model {champion} It raises scores." in analyst.get("/console/").words
    assert "Model in force None" in analyst_of_another(service).get("/console/").words
    assert admin.submit(PATH, f"{PATH}/setting", mode="wild").status == 422
    assert admin.submit(PATH, f"{PATH}/setting", mode="shadow").status == 303
    assert f'name="base" value="{champion}"' in admin.get(PATH).text
    assert admin.submit(PATH, f"{PATH}/rollback", base=str(champion + 1)).status == 409
    assert admin.submit(PATH, f"{PATH}/rollback", base=str(champion)).status == 303
    assert service.cli("model", "show", "--tenant", learner.id, "--json")["champion"] != champion
    assert admin.submit(f"{PATH}/{champion}", f"{PATH}/{champion}/promote").status == 303
    assert service.cli("model", "show", "--tenant", learner.id, "--json")["champion"] == champion
    log = service.rows(f"SELECT action FROM audit_entry WHERE tenant = '{learner.id}'")
    assert log


def analyst_of_another(service: Service) -> Visitor:
    """Return an analyst of a tenant that never labelled anything."""
    return visitor_of(service, service.new_tenant("No labels")[0], "analyst")


def test_a_decision_shows_what_the_model_made_of_it(service: Service, learner: Caller) -> None:
    auditor = visitor_of(service, learner.id, "auditor")
    draw = random.Random(2)

    def is_shown() -> bool:
        event, _ = pay(learner, 1_000, draw)
        return "% fraud, a score of" in auditor.get(f"/console/decisions/{event}").words

    service.wait_for(is_shown, seconds=10)


def test_commands_and_pages_ask_for_the_second_signature(service: Service, learner: Caller) -> None:
    cli, at = service.cli, ("--tenant", learner.id)
    cli("tenant", "set", learner.id, "--rule-approval", "on")
    try:
        said = cli("model", "set", "--mode", "active", *at, "--by", "ana", "--json")
        assert (said["mode"], said["proposed"]["state"]) == ("shadow", "proposed")
        change = said["proposed"]["id"]
        assert cli("model", "approve", change, *at, "--by", "ana", ok=False).returncode == 1
        assert cli("model", "approve", change, *at, "--by", "ben", "--json")["mode"] == "active"
        cli("model", "mode", "shadow", *at)
        ana = visitor_of(service, learner.id, "admin", "lead")
        ben = visitor_of(service, learner.id, "admin", "analyst")
        assert ana.submit(PATH, f"{PATH}/setting", mode="active").status == 303
        change = cli("model", "changes", *at, "--json")[0]["id"]
        approve = f"{PATH}/changes/{change}/approve"
        assert approve not in ana.get(PATH).text
        assert ana.submit(PATH, approve).status == 403
        assert approve in ben.get(PATH).text
        assert ben.submit(PATH, approve).status == 303
        assert cli("model", "show", *at, "--json")["mode"] == "active"
        assert visitor_of(service, learner.id, "editor").submit(PATH, approve).status == 403
        entries = service.rows(f"SELECT action FROM audit_entry WHERE tenant = '{learner.id}'")
        actions = [one[0] for one in entries]
        assert "model approve" in actions
        assert any("models/changes" in action for action in actions), actions
    finally:
        cli("tenant", "set", learner.id, "--rule-approval", "off")
        cli("model", "mode", "shadow", *at)


def test_a_training_that_gave_no_model_is_a_warning(service: Service) -> None:
    tenant = service.new_tenant("No events")[0]
    admin = visitor_of(service, tenant, "admin")
    assert admin.submit(PATH, f"{PATH}/train").status == 303
    service.wait_for(lambda: "The last training gave no model" in admin.get(PATH).words, seconds=60)
    before = admin.get(PATH).text.partition("The last training gave no model")[0]
    assert before.endswith('<div class="warning" role="status"><p>')
