"""The pages of rules: written, checked, proposed by one, approved by another, in force, and taken back."""

import re

import pytest

from tests.console.visitor import PageAnswer, Visitor, visitor_of
from tests.live import Service

PATH = "/console/rules"
GOOD = "extends: default\r\nrules:\r\n  - {id: webdriver, score: 20}\r\n"
BROKEN = "extends: default\nrules:\n  - id: webdriver\n    when: event.kindd == 'login'\n"


class Desk:
    """An editor and two administrators of a tenant whose rules need approval."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.id = service.cli("tenant", "create", "Rules", "--aml", "--json")["tenantId"]
        service.cli("tenant", "set", self.id, "--rule-approval", "on")
        self.editor, self.admin, self.both, self.analyst = (
            visitor_of(service, self.id, *roles)
            for roles in (("editor",), ("admin",), ("admin", "editor"), ("analyst",))
        )


@pytest.fixture(scope="module")
def desk(service: Service) -> Desk:
    return Desk(service)


def proposed(visitor: Visitor, path: str = PATH, document: str = GOOD) -> str:
    made = visitor.submit(f"{path}/edit", f"{path}/save", document=document, note="Less", then="propose")
    assert made.status == 303, made.words
    return made.location.partition("?")[0]


def test_rules_are_proposed_by_one_approved_by_another_and_taken_back(desk: Desk) -> None:
    page = desk.analyst.get(PATH)
    assert page.status == 200
    assert "Version 1 is in force" in page.words
    assert "Edit" not in re.findall(r">(Edit)<", page.text)
    one = proposed(desk.editor)
    shown = desk.editor.get(one)
    assert "webdriver" in shown.words
    assert "score" in shown.words
    assert f"{one}/approve" not in shown.text
    for step in ("approve", "activate", "reject"):
        refused = desk.editor.submit(one, f"{one}/{step}")
        assert (refused.status, "needs the role admin" in refused.words) == (403, True), step
    early = desk.admin.submit(one, f"{one}/activate")
    assert (early.status, "faster" in early.words) == (409, False)
    assert desk.admin.submit(one, f"{one}/approve", note="Seen").status == 303
    assert desk.admin.submit(one, f"{one}/activate").status == 303
    assert "Version 2 is in force" in desk.analyst.get(PATH).words
    assert "Rules, version 2, decide alone" in desk.analyst.get("/console/").words
    assert 'name="base" value="2"' in desk.admin.get(PATH).text
    back = desk.admin.submit(PATH, f"{PATH}/rollback", base="2")
    assert back.status == 303
    late = desk.admin.submit(PATH, f"{PATH}/rollback", base="2")
    assert (late.status, "faster" in late.words) == (409, True)
    assert "Version 3 is in force" in desk.analyst.get(PATH).words
    assert 'name="base" value="3"' in desk.admin.get(one).text
    assert desk.admin.submit(one, f"{PATH}/rollback", to="2").status == 303
    assert "Version 4 is in force" in desk.analyst.get(PATH).words
    log = desk.admin.get("/console/audit")
    assert (log.status, "To 2" in log.words) == (200, True)
    assert "Against version 1" in desk.analyst.get(f"{PATH}/versions/4?against=1").words


def test_nobody_approves_what_they_proposed(desk: Desk) -> None:
    one = proposed(desk.both)
    assert f"{one}/approve" not in desk.both.get(one).text
    refused = desk.both.submit(one, f"{one}/approve")
    assert (refused.status, "Somebody else has to do this" in refused.words) == (403, True)
    assert desk.both.submit(one, f"{one}/reject", note="No").status == 303
    late = desk.admin.submit(one, f"{one}/approve")
    assert (late.status, "Somebody was faster" in late.words) == (409, True)
    assert "rejected" in desk.both.get(one).words


def test_the_editor_checks_with_and_without_a_script(desk: Desk) -> None:
    edit = desk.editor.get(f"{PATH}/edit")
    assert "extends: default" in edit.text
    whole = desk.editor.submit(f"{PATH}/edit", f"{PATH}/check", document=BROKEN)
    assert "line 4, column 11" in whole.words
    assert "event.kindd" in whole.text
    refused = desk.editor.submit(f"{PATH}/edit", f"{PATH}/save", document=BROKEN, then="propose")
    assert refused.status == 422
    assert "event.kindd" in refused.text
    assert "line 4, column 11" in refused.words
    draft = desk.editor.submit(f"{PATH}/edit", f"{PATH}/save", document=BROKEN, then="draft")
    assert draft.status == 303
    assert "draft" in desk.editor.get(draft.location).words
    good = desk.editor.submit(f"{PATH}/edit", f"{PATH}/check", document=GOOD)
    assert "It is good" in good.words
    empty = desk.editor.submit(f"{PATH}/edit", f"{PATH}/check", document="")
    assert (empty.status, "nothing to check" in empty.words) == (200, True)


def test_aml_rules_have_the_same_pages(desk: Desk) -> None:
    path = f"{PATH}/aml"
    assert desk.analyst.get(path).status == 200
    one = proposed(desk.editor, path, "extends: default\nthresholds: {review: 55}\n")
    assert desk.admin.submit(one, f"{one}/approve").status == 303
    assert desk.admin.submit(one, f"{one}/activate").status == 303
    assert "is in force" in desk.analyst.get(path).words
    assert desk.analyst.get(f"{path}/versions/77").status == 404


def test_a_version_names_its_author_and_who_approved_it(service: Service) -> None:
    id_ = service.cli("tenant", "create", "Named", "--json")["tenantId"]
    service.cli("tenant", "set", id_, "--rule-approval", "on")
    editor, admin = visitor_of(service, id_, "editor"), visitor_of(service, id_, "admin")
    editor.submit("/console/profile", "/console/profile", name="Eva Green", theme="dark", timeZone="UTC")
    one = proposed(editor)
    assert admin.submit(one, f"{one}/approve").status == 303
    page = admin.get(one)
    assert "Eva Green" in page.words
    assert f"admin@{id_[-12:]}.example" in page.text.partition("Approved by")[2][:200]
    assert "Eva Green" in admin.get(PATH).words
    assert "usr_" not in page.words + admin.get(PATH).words


def sent_by(page: PageAnswer) -> dict[str, str]:
    """Return the hidden fields of the editor on a page, as a browser sends them."""
    form = page.text.partition("/save")[2].partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


@pytest.mark.parametrize(("path", "pushed"), [(PATH, "rules"), (f"{PATH}/aml", "aml")], ids=["fraud", "aml"])
def test_an_editor_that_others_were_faster_than_is_told_so_and_loses_nothing(
    service: Service, path: str, pushed: str
) -> None:
    id_ = service.cli("tenant", "create", "Two editors", "--aml", "--json")["tenantId"]
    first, second = visitor_of(service, id_, "editor", "admin"), visitor_of(service, id_, "editor")
    theirs, mine = "extends: default\nthresholds: {review: 45}\n", "extends: default\nname: My own\n"
    opened = sent_by(second.get(f"{path}/edit"))
    early = second.post(f"{path}/save", {**opened, "document": mine, "then": "draft"})
    assert early.status == 303, "storing the pack as version 1 changed nothing"
    one = proposed(first, path, theirs)
    assert first.submit(one, f"{one}/activate").status == 303
    version = one.rpartition("/")[2]
    for then in ("propose", "draft"):
        told = second.post(f"{path}/save", {**opened, "document": mine, "note": "Named", "then": then})
        assert told.status == 409
        assert f"Version {version} came into force" in told.words
        assert "name: My own" in told.text
        assert 'value="Named"' in told.text
    again = sent_by(told)
    assert again["base"] == version
    file = service.data / f"between-{pushed}.yaml"
    file.write_text("extends: default\nthresholds: {review: 46}\n")
    made = service.cli(pushed, "push", str(file), "--tenant", id_, "--note", "Between", "--yes", "--json")
    told = second.post(f"{path}/save", {**again, "document": mine, "then": "propose"})
    assert (told.status, f"Version {made['version']} came into force" in told.words) == (409, True)
    saved = second.post(f"{path}/save", {**sent_by(told), "document": mine, "then": "propose"})
    assert saved.status == 303
    older = sent_by(second.get(f"{path}/edit?version=1"))
    assert second.post(f"{path}/save", {**older, "document": mine, "then": "draft"}).status == 303


@pytest.mark.parametrize("path", [PATH, f"{PATH}/aml"])
def test_a_version_comes_into_force_against_the_one_that_was_looked_at(service: Service, path: str) -> None:
    id_ = service.cli("tenant", "create", "Two proposals", "--aml", "--json")["tenantId"]
    editor, first, second = (
        visitor_of(service, id_, *roles) for roles in (("editor",), ("admin",), ("admin", "viewer"))
    )
    one = proposed(editor, path, "extends: default\nthresholds: {review: 45}\n")
    other = proposed(editor, path, "extends: default\nthresholds: {block: 99}\n")
    opened = second.get(other)
    assert "came into force after this one was written" not in opened.words
    assert first.submit(one, f"{one}/activate").status == 303
    version = one.rpartition("/")[2]
    base = re.findall(r'name="base" value="(\d+)"', opened.text)[0]
    for step in ("approve", "activate"):
        late = second.post(f"{other}/{step}", {"csrf": opened.csrf, "base": base, "note": "As we said"})
        assert (late.status, f"Version {version} came into force since" in late.words) == (409, True)
        assert 'value="As we said"' in late.text
    # Whoever looks now is told what it would take back, and may do it knowingly.
    again = second.get(other)
    assert f"Version {version} came into force after this one was written." in again.words
    assert f'name="base" value="{version}"' in again.text
    done = second.post(f"{other}/activate", {"csrf": again.csrf, "base": version})
    assert done.status == 303
    assert "came into force after" not in second.get(other).words


def test_what_an_approval_has_to_come_before_is_not_offered(desk: Desk) -> None:
    one = proposed(desk.editor)
    assert f"{one}/activate" not in desk.admin.get(one).text
    assert desk.admin.submit(one, f"{one}/approve").status == 303
    assert f"{one}/activate" in desk.admin.get(one).text
    assert desk.admin.submit(one, f"{one}/reject").status == 303


@pytest.mark.parametrize("path", [PATH, f"{PATH}/aml"])
def test_rules_in_force_are_found_by_words(desk: Desk, path: str) -> None:
    def names(query: str) -> list[str]:
        table = desk.analyst.get(f"{path}?{query}").text.partition('id="versions"')[0]
        return re.findall(r'<tr data-row><th scope="row"><a href="[^"]+">([^<]+)</a>', table)

    every = names("")
    assert len(every) > 20
    reason = re.findall(r'mono small quiet">([A-Z_]+)<', desk.analyst.get(path).text)[0]
    some = names(f"q={reason.lower()}+active")
    assert 0 < len(some) < len(every)
    assert every[0] in some
    assert sorted(some) == sorted(names(f"sort=score&q={reason}"))
    page = desk.analyst.get(f"{path}?sort=score&q={reason}")
    assert f"{len(some)} of {len(every)} rules" in page.words
    assert f'value="{reason}"' in page.text
    assert f"{path}?sort=hits&amp;q={reason}#rules" in page.text
    assert "No rule in force holds this." in desk.analyst.get(f"{path}?q=no+such+rule+at+all").words
