"""The desk: what becomes of the findings of one event about one subject, to be written at once."""

from typing import Any

import msgspec

from vettance.aml import sql, timeline_sql
from vettance.aml.aml_event import AmlEvent
from vettance.aml.case import (
    SERVICE,
    Alert,
    Case,
    CaseEntry,
    EntryKind,
    open_case,
    with_alert,
    with_raised,
)
from vettance.aml.evidence import SUMMARY_CHARS_MAX, EvidenceWriter, Figures
from vettance.aml.findings import AmlFinding
from vettance.aml.party_screening import NamedParty
from vettance.aml.screening.screen import Screener, ScreeningAssessment
from vettance.aml.suppression import is_raised, mistaken, repeated
from vettance.db.engine import Statement
from vettance.decisions.active_rulesets import ActiveRules
from vettance.ids import IdSource, made_at_ms
from vettance.lists.rule_additions import ListAdditions
from vettance.wire.payload import encode, timestamp


class RaisedAlert(msgspec.Struct, rename="camel", frozen=True):
    """An alert as events answer it."""

    id: str
    severity: str
    summary: str
    rule_id: str
    created_at: str


class EventAssessment(msgspec.Struct, frozen=True):
    """One event after thinking: everything that is stored of it, and what was found."""

    event: AmlEvent
    stored: sql.StoredEvent
    sent: bytes
    record: sql.AmlRecord
    active: ActiveRules
    findings: list[AmlFinding]
    named: list[NamedParty]
    additions: ListAdditions

    @property
    def subjects(self) -> list[str]:
        """Whom alerts may be about, the subject of the most severe finding first."""
        found = [finding.subject for finding in self.findings]
        return list(dict.fromkeys([*found, *(named.request.external_id for named in self.named)]))


class AlertBuilder:
    """The alerts of one event about one subject, as they come together."""

    def __init__(
        self,
        ids: IdSource,
        teller: EvidenceWriter,
        tenant: str,
        thought: EventAssessment,
        known: list[Alert],
        before: Case | None,
        now_ms: int,
    ) -> None:
        """`known` are the subject's alerts that are open or were closed lately, `before` is its open case."""
        self._ids = ids
        self._teller = teller
        self._tenant = tenant
        self._thought = thought
        self._known = known
        self._before = before
        self._case = before
        # A case must be newer after every change, so that changes can be distinguished.
        self._now_ms = max(now_ms, before.updated_at_ms + 1) if before is not None else now_ms
        self._entries: list[CaseEntry] = []
        self._statements: list[Statement] = []
        self.answers: list[RaisedAlert] = []

    def place(self, finding: AmlFinding) -> None:
        """Make a new alert of a finding, or repeat or raise one, or leave it at the record."""
        event = self._thought.event
        rule_id = self._thought.active.ruleset.running[finding.rule].id
        joined = repeated(finding, self._known, event.occurred_at_ms)
        if joined is not None and self._case is not None and is_raised(finding, joined):
            self._tell(_answer(self._raise(joined, finding, self._case)), rule_id)
            return
        if joined is not None:
            self._statements.append(sql.repeat_alert(self._tenant, joined.id, event.occurred_at_ms))
            self._tell(_answer(joined), rule_id)
            return
        if not finding.mandatory and mistaken(finding, self._known):
            return
        case = self._case
        if case is None:
            case = open_case(self._ids.make("cas", self._now_ms), finding.subject, self._now_ms)
            said = f"Opened for {finding.subject}."
            self._entries.append(CaseEntry(self._now_ms, EntryKind.OPENED, SERVICE, said))
        alert = self._new_alert(finding, case.id)
        step = with_alert(case, alert, self._now_ms)
        self._case = step.case
        self._entries.append(step.entry)
        self._statements.append(sql.insert_alert(self._tenant, alert))
        self._tell(_answer(alert), rule_id)

    def _raise(self, joined: Alert, finding: AmlFinding, case: Case) -> Alert:
        """Make an open alert as severe as a finding that belongs to it, under the name that is clear by now.

        Its rule and figures stay those that it was opened with; the events behind it name their own rules.
        """
        summary, _ = self._describe(finding)
        at_ms = max(joined.last_at_ms, self._thought.event.occurred_at_ms)
        raised = msgspec.structs.replace(
            joined, typology=finding.typology, severity=finding.severity, summary=summary, last_at_ms=at_ms
        )
        self._known = [raised if alert.id == joined.id else alert for alert in self._known]
        step = with_raised(case, joined, raised, self._now_ms)
        self._case = step.case
        self._entries.append(step.entry)
        self._statements.append(sql.raise_alert(self._tenant, raised))
        return raised

    def place_name(self, weighed: ScreeningAssessment, screener: Screener) -> None:
        """Make an alert of a party that is on a list, or repeat one, in the case of the customer."""
        if not weighed.alerts:
            return
        placed = screener.place(self._tenant, weighed, self._case, self._now_ms)
        assert placed.link is not None
        assert placed.severity is not None
        self._case = placed.case
        self._entries += placed.entries
        self._statements += placed.statements
        alert_id, rule_id = placed.link.alert_id, weighed.screening.algorithm
        summary, made_at = placed.summary or "", timestamp(made_at_ms(alert_id))
        self._tell(RaisedAlert(alert_id, placed.severity.value, summary, rule_id, made_at), rule_id)

    def all_statements(self) -> list[Statement]:
        """Return what writes the alerts, the case and its timeline."""
        if self._case is None or self._case is self._before:
            return self._statements
        saved = (
            sql.insert_case(self._tenant, self._case)
            if self._before is None
            else sql.update_case(self._tenant, self._before, self._case)
        )
        entries = [timeline_sql.insert_entry(self._tenant, self._case.id, entry) for entry in self._entries]
        return [*self._statements, saved, *entries]

    def _tell(self, answer: RaisedAlert, rule_id: str) -> None:
        """Answer with an alert, and put the event behind it."""
        if all(known.id != answer.id for known in self.answers):
            behind = sql.insert_alert_event(self._tenant, answer.id, self._thought.stored.id, rule_id)
            self._statements.append(behind)
            self.answers.append(answer)

    def _new_alert(self, finding: AmlFinding, case_id: str) -> Alert:
        thought, now_ms = self._thought, self._now_ms
        running = thought.active.ruleset.running
        rule, event = running[finding.rule], thought.event
        summary, values = self._describe(finding)
        figures = Figures(
            rule.id, rule.name, values, event.trail.path, tuple(running[i].id for i in finding.others)
        )
        return Alert(
            id=self._ids.make("alr", now_ms),
            case_id=case_id,
            customer=finding.subject,
            typology=finding.typology,
            rule_id=rule.id,
            severity=finding.severity,
            summary=summary,
            created_at_ms=now_ms,
            last_at_ms=event.occurred_at_ms,
            figures=encode(figures),
        )

    def _describe(self, finding: AmlFinding) -> tuple[str, dict[str, Any]]:
        """Return the summary of a finding, and the values that its rule read."""
        thought, record = self._thought, self._thought.record
        running = thought.active.ruleset.running
        # Of a late event, the first answers are those as of its own time.
        as_if_last = bool(record.late_answers) and record.answers != record.late_answers[0]
        summary, values = self._teller.tell(
            running[finding.rule],
            thought.active.compiled,
            record.facts,
            record.answers,
            thought.event,
            as_if_last=as_if_last,
        )
        if finding.others:
            others = "; ".join(running[index].name for index in finding.others)
            summary = f"{summary} With it: {others}."[:SUMMARY_CHARS_MAX]
        return summary, values


def _answer(alert: Alert) -> RaisedAlert:
    return RaisedAlert(
        alert.id, alert.severity.value, alert.summary, alert.rule_id, timestamp(alert.created_at_ms)
    )
