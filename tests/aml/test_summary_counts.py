"""Summaries of alerts count in the singular and in the plural, with separators."""

import time
from pathlib import Path

from tests.aml.watched_money import EVENTS, bank_of
from tests.live import Service

RULES = """
name: Own
levels: {medium: 60, high: 75, critical: 95}
thresholds: {review: 40, block: 100}
rules:
  - id: opened
    name: Opened
    when: amount >= 100 and account.age_days >= 1
    score: 45
    reason: FAN_IN
    explanation: It is open.
    tests:
      - {name: no age, event: {eventName: x, metadata: {amount: 150}}, fires: false}
      - {name: aged, event: {eventName: x, metadata: {amount: 150, accountOpenedAt: "2020-01-01"}},
         fires: true}
"""


def test_a_summary_counts_the_days_of_an_account(service: Service, tmp_path: Path) -> None:
    bank, file = bank_of(service, "Summaries that count"), tmp_path / "own.yaml"
    file.write_text(RULES)
    service.cli("aml", "push", str(file), "--tenant", bank.id, "--yes", "--json")
    for days, said in ((1.1, "1 day old"), (9.1, "9 days old"), (2_045.1, "2,045 days old")):
        opened = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - days * 86_400))
        body = {
            "eventName": "transfer.sent",
            "externalEventId": f"opened-{days}",
            "customer": {"externalId": f"opened-{days}"},
            "metadata": {"amount": 150, "currency": "EUR", "accountOpenedAt": opened, "direction": "in"},
        }
        (alert,) = bank.post(EVENTS, body).json["alerts"]
        assert f"the account is {said}" in alert["summary"].lower()
