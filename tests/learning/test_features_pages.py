"""The pages of features: looked at by those who know rules, changed by administrators, without a script."""

import random

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.learning.conftest import pay
from tests.live import Caller, Service

PATH = "/console/models/features"
OWN = "cents: {value: metadata.amount * 100, family: amount, text: amount in cents}\n"


@pytest.fixture
def tenant(service: Service) -> Caller:
    caller = Caller(service, *service.new_tenant("Pages"))
    draw = random.Random(4)
    for number in range(40):
        pay(caller, number, draw)
    return caller


@pytest.fixture
def admin(service: Service, tenant: Caller) -> Visitor:
    return visitor_of(service, tenant.id, "admin")


def test_features_are_written_and_shown_with_what_each_is(admin: Visitor) -> None:
    assert "No features are recorded yet." in admin.get(PATH).words
    assert 'href="/console/models/features"' in admin.get("/console/models").text
    saved = admin.submit(f"{PATH}/edit", f"{PATH}/save", document=OWN.replace("\n", "\r\n"), note="Cents")
    assert saved.status == 303
    page = admin.get(PATH)
    assert "Version 1 is in force, with " in page.words
    assert "1 of them your own" in page.words
    for word in ("cents", "own", "amount in cents", "metadata.amount * 100", "Cents"):
        assert word in page.words
    assert "hour of the day (UTC)" in page.words
    amounts = admin.get(f"{PATH}?family=amount").words
    assert "amount in cents" in amounts
    assert "hour of the day (UTC)" not in amounts
    one = admin.get(f"{PATH}/versions/1").words
    assert "What it changed" in one
    assert "amount in cents" in one
    assert admin.get(f"{PATH}/versions/7").status == 404


def test_the_editor_shows_faults_in_their_place_and_keeps_the_text(admin: Visitor) -> None:
    broken = "good: hour\ncents: metadata.amount *\nhuor: null\n# <b>\n"
    checked = admin.submit(f"{PATH}/edit", f"{PATH}/check", document=broken, note="My note")
    assert checked.status == 200
    for text in (
        "It would be refused.",
        "column 24: something is missing after this",
        "column 7: no feature of that name comes along",
        "(did you mean hour?)",
    ):
        assert text in " ".join(checked.words.split())
    assert "<code>cents: metadata.amount *</code>" in checked.text
    assert "# &lt;b&gt;" in checked.text
    assert "<b>" not in checked.text
    refused = admin.submit(f"{PATH}/edit", f"{PATH}/save", document=broken, note="My note")
    assert refused.status == 422
    assert "The feature set does not pass" in refused.words
    assert "metadata.amount *\nhuor: null" in refused.text
    assert 'value="My note"' in refused.text
    good = admin.submit(f"{PATH}/edit", f"{PATH}/check", document=OWN).words
    assert "It is good." in good
    assert "What it would change" in good
    assert "There is no version yet." in admin.get(PATH).words


def test_who_saves_over_another_version_is_told_and_may_save_again(admin: Visitor) -> None:
    assert admin.submit(f"{PATH}/edit", f"{PATH}/save", document=OWN).status == 303
    late = admin.submit(f"{PATH}/edit", f"{PATH}/save", document="mine: hour\n", base="0")
    assert late.status == 409
    assert "Version 1 is in force by now" in late.words
    assert "mine: hour" in late.text
    assert f'href="{PATH}/versions/1"' in late.text
    assert 'name="base" value="1"' in late.text
    assert admin.submit(f"{PATH}/edit", f"{PATH}/save", document="mine: hour\n", base="1").status == 303
    assert "Version 2 is in force" in admin.get(PATH).words


def test_an_earlier_version_is_gone_back_to(service: Service, tenant: Caller, admin: Visitor) -> None:
    for base, document in enumerate((OWN, "mine: hour\n")):
        made = admin.submit(f"{PATH}/edit", f"{PATH}/save", document=document, base=str(base))
        assert made.status == 303
    page = admin.get(f"{PATH}/versions/1")
    assert "Go back to this version" in page.words
    assert "Go back" not in admin.get(f"{PATH}/versions/2").words
    back = admin.submit(f"{PATH}/versions/1", f"{PATH}/rollback", to="1", base="2")
    assert back.status == 303
    shown = admin.get(f"{PATH}/versions/3").words
    assert "in force" in shown
    assert "amount in cents" in shown
    listed = admin.get(PATH).words
    assert "back to 1" in listed
    assert "Added cents" in listed
    assert "Left out mine" in listed
    assert admin.submit(PATH, f"{PATH}/rollback", to="2", base="2").status == 409
    analyst = visitor_of(service, tenant.id, "analyst")
    assert "Version 3 is in force" in analyst.get(PATH).words
    assert "Edit" not in analyst.get(PATH).words.split()
    for path in ("save", "check", "rollback"):
        assert analyst.submit(PATH, f"{PATH}/{path}", document=OWN).status == 403
    assert analyst.get(f"{PATH}/edit").status == 403
    entries = service.rows(f"SELECT action FROM audit_entry WHERE tenant = '{tenant.id}'")
    actions = [one[0] for one in entries]
    assert actions.count("PUT /api/v1/models/features") == 2
    assert actions.count("POST /api/v1/models/features/rollback") == 1


def test_another_organisation_sees_nothing_of_them(service: Service, admin: Visitor) -> None:
    admin.submit(f"{PATH}/edit", f"{PATH}/save", document=OWN)
    stranger = visitor_of(service, service.new_tenant("Others")[0], "admin")
    assert "No features are recorded yet." in stranger.get(PATH).words
    assert stranger.get(f"{PATH}/versions/1").status == 404


def test_the_page_says_that_a_model_goes_on_with_its_own(service: Service, learner: Caller) -> None:
    admin = visitor_of(service, learner.id, "admin", "editor")
    before = admin.get(PATH)
    assert "goes on with the features" not in before.words
    version = learner.get("/api/v1/models/features").json["version"]
    made = admin.submit(f"{PATH}/edit", f"{PATH}/save", document="hour: null\n", base=str(version))
    assert made.status == 303
    assert "goes on with the features that it was made from" in admin.get(PATH).words
    back = admin.submit(PATH, f"{PATH}/rollback", base=str(version + 1))
    assert back.status == 303
    assert "goes on with the features" not in admin.get(PATH).words
