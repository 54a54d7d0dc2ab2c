"""The page of a rule: as written, its figures, newest hits, history, tests, snoozes and changes, by role."""

import re

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service, ask_store

PATH = "/console/rules"
RULES = """extends: default
rules:
  - id: big
    name: A big payment
    when: metadata.amount > 900
    score: 40
    reason: BIG_PAYMENT
    explanation: It is more than usual.
    tests:
      - {name: fires, event: {eventName: payment.attempt, metadata: {amount: 901}}, fires: true}
      - {name: rests, event: {eventName: payment.attempt, metadata: {amount: 899}}, fires: false}
  - id: edit
    name: Called like a page
    when: metadata.amount > 901
    score: 1
    reason: CALLED_LIKE_A_PAGE
    explanation: A rule may have any id.
    mode: shadow
"""


class RuleDesk:
    """A tenant with a rule of its own in two versions, with decisions and a label."""

    def __init__(self, service: Service, folder: str) -> None:
        self.service = service
        self.caller = Caller(service, *service.new_tenant("Rule pages"))
        for number, text in enumerate((RULES, RULES.replace("score: 40", "score: 45"))):
            file = service.data / f"{folder}-{number}.yaml"
            file.write_text(text)
            note = ("--note", f"Note {number}", "--json")
            made = service.cli("rules", "push", str(file), "--tenant", self.caller.id, *note)
            self.found = made["version"]
        service.wait_for(lambda: self._pay(950)["ruleVersion"]["version"] == str(self.found), seconds=10)
        self.decisions = [self._pay(amount)["correlationIds"]["eventId"] for amount in (950, 1000, 20)]
        self.caller.post(f"/api/v1/feedback/decision/{self.decisions[0]}", {"label": "FRAUD"})
        self.editor, self.analyst = (
            visitor_of(service, self.caller.id, role) for role in ("editor", "analyst")
        )

    def _pay(self, amount: int) -> dict[str, object]:
        body = {"eventName": "payment.attempt", "metadata": {"amount": amount, "currency": "EUR"}}
        answer: dict[str, object] = self.caller.post("/api/v1/decisions/evaluate", body).json
        return answer


@pytest.fixture(scope="module")
def desk(service: Service) -> RuleDesk:
    return RuleDesk(service, "rule-pages")


def test_the_page_shows_the_rule_its_hits_with_labels_and_its_history(desk: RuleDesk) -> None:
    page = desk.analyst.get(f"{PATH}/big")
    assert page.status == 200
    assert "metadata.amount &gt; 900" in page.text
    for decision, is_hit in zip(desk.decisions, (True, True, False), strict=True):
        assert (f'href="/console/decisions/{decision}"' in page.text) is is_hit
    assert ">fraud<" in page.text
    assert f"Version {desk.found} changed it" in page.words
    assert "score 40 → 45" in page.words
    assert "Note 1" in page.words
    assert "added it" in page.words
    assert 'class="picture"' in page.text
    assert f'href="{PATH}/edit"' not in page.text
    assert f'href="{PATH}/big"' in desk.analyst.get(PATH).text
    assert f'href="{PATH}/big"' in desk.analyst.get(f"/console/decisions/{desk.decisions[0]}").text


def test_a_reason_leads_to_the_decisions_with_it_and_no_others(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Reasons"))
    file = service.data / "reasons.yaml"
    big = RULES.partition("  - id: edit")[0].replace("extends: default", "name: Reasons")
    small = big.partition("rules:\n")[2].replace("id: big", "id: small").replace("> 900", "< 30")
    small = small.replace("amount: 901", "amount: 29").replace("BIG_PAYMENT", "NOT_A_BIG_PAYMENT")
    file.write_text(big + small)
    service.cli("rules", "push", str(file), "--tenant", caller.id, "--yes", "--note", "Two", "--json")

    def pay(amount: int) -> dict[str, object]:
        body = {"eventName": "payment.attempt", "metadata": {"amount": amount, "currency": "EUR"}}
        answer: dict[str, object] = caller.post("/api/v1/decisions/evaluate", body).json
        return answer

    service.wait_for(lambda: "BIG_PAYMENT" in str(pay(950)["reasonCodes"]), seconds=10)
    large, tiny = (pay(amount)["correlationIds"]["eventId"] for amount in (950, 20))
    analyst = visitor_of(service, caller.id, "analyst")
    link = "/console/decisions?reasonCode=BIG_PAYMENT"
    assert f'href="{link}"' in analyst.get(f"{PATH}/big").text
    assert f'href="{link}"' in analyst.get(f"/console/decisions/{large}").text
    assert f'href="{link}' in analyst.get("/console/").text
    found = analyst.get(link)
    assert "reason is BIG_PAYMENT" in found.words
    assert (large in found.text, tiny in found.text) == (True, False)
    found = analyst.get("/console/decisions?reasonCode=NOT_A_BIG_PAYMENT")
    assert (large in found.text, tiny in found.text) == (False, True)


def test_a_rule_that_is_called_like_a_page_has_one(desk: RuleDesk) -> None:
    assert f'href="{PATH}/%65dit"' in desk.analyst.get(PATH).text
    page = desk.analyst.get(f"{PATH}/%65dit")
    assert "Called like a page" in page.words
    assert "without effect" in page.words


def test_hostile_texts_of_rules_are_text(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Hostile rules"))
    script = "<script>alert(1)</script>"
    text = RULES.replace("A big payment", script).replace("It is more than usual.", f"'{script}'")
    file = service.data / "hostile.yaml"
    for score in ("40", "41"):
        file.write_text(
            text.replace("name: fires", f"name: '{script}'").replace("score: 40", f"score: {score}")
        )
        service.cli("rules", "push", str(file), "--tenant", caller.id, "--note", script, "--json")
    editor = visitor_of(service, caller.id, "editor")
    snooze = {"rule": "big", "type": "CUSTOMER", "value": script, "expiry": "1d", "reason": script}
    assert editor.submit(f"{PATH}/big", f"{PATH}/snoozes", **snooze).status == 303
    typed = {"rule": "big", "when": script, "score": script, "note": script, "then": "propose"}
    for page in (
        *(editor.get(f"{PATH}/big?tests=run"), editor.get(PATH), editor.get(f"{PATH}/backtests")),
        editor.submit(f"{PATH}/big", f"{PATH}/changes", **typed),
        editor.submit(f"{PATH}/backtests", f"{PATH}/backtests", version=script),
    ):
        assert page.status in (200, 400, 422)
        assert script not in page.text
    assert "&lt;script&gt;alert(1)" in editor.get(f"{PATH}/big").text


def test_a_rule_that_is_in_force_no_more_keeps_its_page(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Gone"))
    file = service.data / "gone.yaml"
    for text in (RULES, "extends: default\n"):
        file.write_text(text)
        service.cli("rules", "push", str(file), "--tenant", caller.id, "--yes", "--note", "Less", "--json")
    editor = visitor_of(service, caller.id, "editor")
    page = editor.get(f"{PATH}/big")
    assert (page.status, "in force no more" in page.words) == (200, True)
    assert "removed it" in page.words
    assert f'action="{PATH}/changes"' not in page.text
    fields = {"rule": "big", "score": "1", "then": "draft"}
    assert editor.submit(f"{PATH}/webdriver", f"{PATH}/changes", **fields).status == 404


def test_no_rule_and_a_rule_of_another_tenant_are_not_found(desk: RuleDesk, service: Service) -> None:
    assert desk.editor.get(f"{PATH}/none").status == 404
    other = visitor_of(service, service.new_tenant("Others")[0], "editor")
    assert other.get(f"{PATH}/big").status == 404
    assert desk.editor.get(f"{PATH}/aml/velocity-burst").status == 403  # The product is off.


def test_a_rule_is_snoozed_and_acts_again(desk: RuleDesk) -> None:
    fields = {"rule": "big", "type": "CUSTOMER", "value": "c-quiet", "expiry": "7d", "reason": "Known"}
    assert desk.analyst.submit("/console/profile", f"{PATH}/snoozes", **fields).status == 403
    assert desk.editor.submit(f"{PATH}/big", f"{PATH}/snoozes", **fields).status == 303
    page = desk.analyst.get(f"{PATH}/big")
    assert "c-quiet" in page.words
    assert "Known" in page.words
    assert "/snoozes/" not in page.text
    end = re.search(rf"{PATH}/snoozes/snz_\w+/end", desk.editor.get(f"{PATH}/big").text)
    assert end is not None
    assert desk.editor.submit(f"{PATH}/big", end[0], rule="big").status == 303
    assert "c-quiet" not in desk.analyst.get(f"{PATH}/big").words
    refused = desk.editor.submit(f"{PATH}/big", f"{PATH}/snoozes", **fields | {"type": "IP", "value": "<b>"})
    assert refused.status == 422
    assert "is no value of the type IP" in refused.words
    assert 'value="&lt;b&gt;"' in refused.text


def test_a_snooze_that_is_sent_again_is_the_same(desk: RuleDesk) -> None:
    fields = {"rule": "big", "type": "CUSTOMER", "value": "c-twice", "expiry": "7d", "reason": ""}
    for _ in range(3):
        assert desk.editor.submit(f"{PATH}/big", f"{PATH}/snoozes", **fields).status == 303
    ends = set(re.findall(rf"{PATH}/snoozes/snz_\w+/end", desk.editor.get(f"{PATH}/big").text))
    assert 1 <= len(ends) <= 2  # One for each minute in which it was sent.
    for end in ends:
        assert desk.editor.submit(f"{PATH}/big", end, rule="big").status == 303


def test_a_change_is_proposed_as_the_document_with_one_member_changed(desk: RuleDesk) -> None:
    now = {"rule": "big", "score": "45", "rollout": "100", "mode": "active", "when": "metadata.amount > 900"}
    same = desk.editor.submit(f"{PATH}/big", f"{PATH}/changes", **now, then="draft")
    assert (same.status, "Nothing is different" in same.words) == (422, True)
    bad = desk.editor.submit(f"{PATH}/big", f"{PATH}/changes", **now | {"score": "many"}, then="propose")
    assert bad.status == 422
    made = desk.editor.submit(f"{PATH}/big", f"{PATH}/changes", **now | {"score": "55"}, then="propose")
    assert made.status == 303, made.words
    page = desk.editor.get(made.location)
    assert "proposed" in page.words
    assert "score 45 → 55" in page.words
    assert "extends: default" in page.text


def test_a_change_of_a_rule_that_others_were_faster_than_is_told_so(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Two changes"))
    file = service.data / "two-changes.yaml"

    def push(text: str) -> int:
        file.write_text(text)
        words = ("--tenant", caller.id, "--yes", "--note", "Theirs", "--json")
        found: int = service.cli("rules", "push", str(file), *words)["version"]
        return found

    first = push(RULES)
    editor = visitor_of(service, caller.id, "editor")
    assert f'name="base" value="{first}"' in editor.get(f"{PATH}/big").text
    newer = push(RULES.replace("score: 40", "score: 47"))
    typed = {"rule": "big", "score": "40", "when": "metadata.amount > 800", "note": "Lower"}
    told = editor.submit(f"{PATH}/big", f"{PATH}/changes", **typed, base=first, then="propose")
    assert (told.status, f"Version {newer} came into force" in told.words) == (409, True)
    assert "metadata.amount &gt; 800</textarea>" in told.text
    assert 'value="Lower"' in told.text
    assert f'name="base" value="{newer}"' in told.text
    assert editor.submit(f"{PATH}/big", f"{PATH}/changes", **typed, base=newer, then="draft").status == 303


def test_the_tests_of_a_rule_are_run(desk: RuleDesk) -> None:
    page = desk.editor.get(f"{PATH}/big?tests=run")
    assert page.text.count("</svg>passed") == 2
    assert "</svg>passed" not in desk.analyst.get(f"{PATH}/big?tests=run").text


def test_a_damaged_record_is_passed_over(desk: RuleDesk, service: Service) -> None:
    broken, kept = desk.decisions[1], desk.decisions[0]
    hexed = "'\\x7b'::bytea" if "VETTANCE_DATABASE_URL" in service.env else "x'7b'"
    ask_store(
        service.data,
        service.env,
        f"UPDATE decision SET record = {hexed} WHERE id = '{broken}' RETURNING id",
    )
    page: Visitor = desk.analyst
    shown = page.get(f"{PATH}/big")
    assert shown.status == 200
    assert f'href="/console/decisions/{broken}"' not in shown.text
    assert f'href="/console/decisions/{kept}"' in shown.text


def test_what_a_rule_of_many_values_reads_is_a_click_away(desk: RuleDesk) -> None:
    page = desk.editor.get(f"{PATH}/unlike-customer-login-1")
    assert re.search(r"Reads \d+ values", page.words)
    assert "<summary>" in page.text.partition("<dt>Reads</dt>")[2].partition("</dd>")[0]
    assert "Reads metadata.amount" in desk.editor.get(f"{PATH}/big").words
