"""How many AML alerts an officer works to find most of the true ones, by priority and without.

Rules, memory, suppression, training and priorities are those of the service, in this process without a store.
An officer closes a case three days after it was opened, and tells laundering from what is none; some err.
"""

import argparse
import random
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bench.aml.aml import ours
from vettance.aml.aml_event import AmlEvent, read_taken_aml_event
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.case import NO_PRIORITY, Alert, AlertState, Resolution
from vettance.aml.evidence import EvidenceWriter, Figures
from vettance.aml.features import aml_schema
from vettance.aml.findings import SEVERITIES, AmlFinding, judge, rule_weight
from vettance.aml.sql import AmlRecord
from vettance.aml.suppression import QUIET_MS, mistaken, repeated
from vettance.clock import DAY_MS
from vettance.learning.alert_facts import facts_of, names_of
from vettance.learning.alert_values import (
    AlertTable,
    CustomerAlert,
    OrderedAlert,
    Resolutions,
    priority_of,
    values_of,
)
from vettance.learning.run_training import is_due
from vettance.learning.train_alerts import train_on
from vettance.learning.training_rows import TooFewLabels
from vettance.models.trees import TreeModel, text_digest, write_trees
from vettance.reference.currencies import Currencies
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.wire.payload import encode

_TENANT = "t"
_SHARE = 0.8


class RankedAlert(NamedTuple):
    """An alert of the measured days: when it was raised, how it was ranked, and the truth."""

    at_ms: int
    priority: int
    severity: int
    is_true: bool


class _WorkedAlert(NamedTuple):
    alert: Alert
    facts: dict[str, float]
    priority: int


class AlertStream:
    """Watches generated money as the service does; officers work the alerts meanwhile."""

    def __init__(self, delay_days: float, wrong: float, seed: int) -> None:
        self._ruleset = load_pack("aml")
        schema = aml_schema()
        self._compiled = compile_ruleset(self._ruleset, schema)
        self._names = names_of(self._compiled)
        self._teller = EvidenceWriter(schema, Currencies())
        self._memory = AmlMemory(MemoryVelocity())
        self._memory.install(_TENANT, self._compiled.plan)
        self._delay_ms, self._wrong = int(delay_days * DAY_MS), wrong
        self._chance = random.Random(f"officers {seed}")
        self._involved: set[str] = set()
        self._worked: list[_WorkedAlert] = []
        self._of: dict[str, list[int]] = {}
        self._due: dict[str, int] = {}
        self._resolutions = Resolutions()
        self._counts: dict[str, list[int]] = {}
        self._trees: TreeModel | None = None
        self._matches = self._trained = self._trained_at_ms = 0
        self.models = 0
        self.ranked: list[RankedAlert] = []

    def watch(self, case: str, customer: str, body: dict[str, object], at_ms: int) -> None:
        """Watch one event; `case` names the planted laundering that it belongs to."""
        for name in [name for name, due_ms in self._due.items() if due_ms <= at_ms]:
            self._close(name, self._due.pop(name))
        if case:
            self._involved.add(customer)
        name = str(body["externalEventId"])
        event = read_taken_aml_event(body, at_ms)
        taken = self._memory.take(_TENANT, self._compiled, name, event)
        event, facts, answer = taken.event, taken.facts, taken.answer
        fired, failed = self._compiled.run(facts, answer.values)
        if not fired:
            return
        weights = {rule: rule_weight(*counts) for rule, counts in self._counts.items()}
        for finding in judge(self._ruleset, fired, weights, event):
            self._place(
                finding,
                event,
                AmlRecord(
                    ruleset_version=1,
                    facts=facts,
                    answers=answer.values,
                    inexact=0,
                    fired=fired,
                    failed=failed,
                ),
                at_ms,
            )

    def _place(self, finding: AmlFinding, event: AmlEvent, record: AmlRecord, at_ms: int) -> None:
        subject = finding.subject
        known = [self._worked[place].alert for place in reversed(self._of.get(subject, ()))]
        lately = [one for one in known if one.resolved_at_ms is None or one.resolved_at_ms > at_ms - QUIET_MS]
        if repeated(finding, lately, event.occurred_at_ms) is not None:
            return
        if not finding.mandatory and mistaken(finding, lately):
            return
        rule = self._ruleset.running[finding.rule]
        _, values = self._teller.tell(rule, self._compiled, record.facts, record.answers, event)
        others = tuple(self._ruleset.running[index].id for index in finding.others)
        place = len(self._worked)
        alert = Alert(
            id=f"alr_{place:08}",
            case_id=f"cas_{subject}",
            customer=subject,
            typology=finding.typology,
            rule_id=rule.id,
            severity=finding.severity,
            summary="",
            created_at_ms=at_ms,
            last_at_ms=event.occurred_at_ms,
            figures=encode(Figures(rule.id, rule.name, values, event.trail.path, others)),
        )
        facts = facts_of(record, self._names)
        priority = self._priority(alert, facts)
        self._worked.append(_WorkedAlert(alert, facts, priority))
        self._of.setdefault(subject, []).append(place)
        self._due.setdefault(subject, at_ms + self._delay_ms)
        severity = SEVERITIES.index(alert.severity)
        self.ranked.append(RankedAlert(at_ms, priority, severity, subject in self._involved))

    def _priority(self, alert: Alert, facts: dict[str, float]) -> int:
        if self._trees is None:
            return NO_PRIORITY
        earlier = [self._worked[place].alert for place in reversed(self._of.get(alert.customer, ()))]
        past = [
            CustomerAlert(one.typology, one.created_at_ms, one.resolution, one.resolved_at_ms)
            for one in earlier[:200]
        ]
        values = values_of(_seen(alert, NO_PRIORITY), self._resolutions, past, facts)
        return priority_of(self._trees.log_odds([values.get(name) for name in self._trees.features]))

    def _close(self, subject: str, at_ms: int) -> None:
        """Have an officer close the case of a customer."""
        is_true = (subject in self._involved) != (self._chance.random() < self._wrong)
        resolution = Resolution.TRUE_MATCH if is_true else Resolution.FALSE_POSITIVE
        for place in self._of[subject]:
            worked = self._worked[place]
            if worked.alert.state is not AlertState.OPEN:
                continue
            closed = msgspec.structs.replace(
                worked.alert, state=AlertState.CLOSED, resolution=resolution, resolved_at_ms=at_ms
            )
            self._worked[place] = worked._replace(alert=closed)
            self._resolutions.add(closed.rule_id, closed.typology, resolution)
            self._counts.setdefault(closed.rule_id, [0, 0])[not is_true] += 1
            self._matches += is_true
        if is_due(self._matches, self._trained, self._trained_at_ms, at_ms):
            self._train(at_ms)

    def _train(self, at_ms: int) -> None:
        self._trained, self._trained_at_ms = self._matches, at_ms
        table = AlertTable()
        for worked in self._worked:
            table.take(_seen(worked.alert, worked.priority), worked.facts)
        try:
            made = train_on(table, self.models or None)
        except TooFewLabels:
            return
        if made.is_better:
            self.models += 1
            text = write_trees(made.trees)
            self._trees = TreeModel(text, text_digest(text))


def _seen(alert: Alert, priority: int) -> OrderedAlert:
    said = alert.resolution.value if alert.resolution is not None else None
    return OrderedAlert(
        *(alert.id, alert.customer, alert.typology, alert.rule_id, alert.severity.value, alert.origin.value),
        *(alert.figures, alert.created_at_ms, priority, said, alert.resolved_at_ms, None),
    )


def worked_until(ranked: Sequence[RankedAlert], share: float = _SHARE) -> int:
    """Return how many of the alerts, in this order, are worked until that share of the true ones is found."""
    wanted = share * sum(one.is_true for one in ranked)
    found = 0
    for count, one in enumerate(ranked, 1):
        found += one.is_true
        if found >= wanted:
            return count
    return len(ranked)


def measure_alerts(options: argparse.Namespace, seed: int) -> None:
    """Print how many alerts of the last days are worked for 80 % of the true ones."""
    stream = AlertStream(3.0, options.wrong, seed)
    last_ms = 0
    for _kind, case, customer, body, at_ms in ours(options.customers, options.days, seed, options.cases):
        stream.watch(case, customer, body, at_ms)
        last_ms = at_ms
    late = [one for one in stream.ranked if one.at_ms > last_ms - options.last * DAY_MS]
    newest = sorted(late, key=lambda one: -one.at_ms)
    true = sum(one.is_true for one in late)
    known = sum(one.priority != NO_PRIORITY for one in late)
    orders = {
        "newest first": newest,
        "by severity": sorted(newest, key=lambda one: -one.severity),
        "by priority": sorted(newest, key=lambda one: -one.priority),
    }
    worked = ", ".join(f"{name} {worked_until(order)}" for name, order in orders.items())
    print(
        f"seed {seed}: {len(stream.ranked)} alerts, {stream.models} models put in service; of the last "
        f"{options.last:g} days {len(late)}, {true} true, {known} with a priority; worked for 80 % of the "
        f"true ones: {worked}",
        flush=True,
    )
