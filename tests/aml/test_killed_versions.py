"""A version of AML rules whose process is killed: the rules in force are those before it, or its own."""

import contextlib
import http.client
import itertools
import signal
import subprocess
import sys
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.aml.version_life import open_store
from tests.databases import lasting_database
from tests.live import ENGINE, Caller, Service
from vettance.aml.sql import RULE_SETS
from vettance.db.engine import Store
from vettance.rules.sql import document_digest
from vettance.rules.version import RuleSetVersion, VersionState, version_of
from vettance.tenants.sql import insert_tenant, select_changes
from vettance.tenants.tenant import Tenant

TENANT = Tenant(id="ten_1", name="One", rule_approval=True)
#: What the log says of a version in each state; one that was not stored has none.
STEPS = {
    None: [],
    VersionState.PROPOSED: ["proposed"],
    VersionState.APPROVED: ["proposed", "approved"],
    VersionState.ACTIVE: ["proposed", "approved", "activated"],
}
#: Every so many points of a life, the process is killed there.
STRIDE = 17


class Lives:
    """A program that takes versions through their lives, and is killed as it is told."""

    def __init__(self, place: str) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.aml.version_life", place, TENANT.id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def one(self, point: int) -> tuple[int, int]:
        """Return the exit code of a life that is killed at a point, and how many points it has passed."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(f"{point}\n")
        self._program.stdin.flush()
        code, passed = self._program.stdout.readline().split()
        return int(code), int(passed)

    def close(self) -> None:
        self._program.communicate(timeout=10)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return lasting_database() if ENGINE == "postgres" else str(tmp_path / "vettance.db")


@pytest.fixture
def lives(place: str) -> Iterator[Lives]:
    running = Lives(place)
    yield running
    running.close()


class Kept(NamedTuple):
    """The versions that a store keeps by their numbers, and the one in force."""

    versions: dict[int, RuleSetVersion]
    active: int

    @classmethod
    async def read(cls, store: Store) -> "Kept":
        rows = await store.read(RULE_SETS.select_versions(TENANT.id))
        found = {one.version: one for one in map(version_of, rows)}
        (active,) = [one.version for one in found.values() if one.state is VersionState.ACTIVE]
        assert await store.read(RULE_SETS.select_active(TENANT.id)) == [
            (active, (await whole_of(store, active)), found[active].digest)
        ]
        return cls(found, active)


async def whole_of(store: Store, version: int) -> str:
    ((document,),) = await store.read(RULE_SETS.select_version(TENANT.id, version))
    return str(document)


async def state_of_made(store: Store, before: Kept, after: Kept, point: int) -> VersionState | None:
    """Return the state of the version that a life has made, having seen that everything agrees with it."""
    number = max(before.versions) + 1
    made = after.versions.get(number)
    assert after.versions.keys() == before.versions.keys() | ({number} if made is not None else set())
    state = made.state if made is not None else None
    log = await store.read(RULE_SETS.select_steps(TENANT.id))
    assert [row[2] for row in reversed(log) if row[1] == number] == STEPS[state]
    heard = [row[3] for row in await store.read(select_changes(0)) if row[1] == RULE_SETS.area]
    assert heard.count(str(number)) == (state is VersionState.ACTIVE)
    if made is not None:
        assert made.digest == document_digest(await whole_of(store, number))
        assert await whole_of(store, number) == f"killed at {point}"
        assert made.approved_by == (None if state is VersionState.PROPOSED else "ben")
    assert after.active == (number if state is VersionState.ACTIVE else before.active)
    if after.active != before.active:
        assert after.versions[before.active].state is VersionState.RETIRED
    return state


async def test_wherever_a_process_is_killed_the_version_before_or_after_is_in_force(
    place: str, lives: Lives
) -> None:
    store = await open_store(place)
    await store.migrate()
    await store.write(insert_tenant(TENANT, 1), RULE_SETS.insert(TENANT.id, 1, "first", "The pack.", 1))
    code, points = lives.one(0)
    assert code == 0
    before = await Kept.read(store)
    assert before.active == 2
    seen = set()
    for point in range(1, points, STRIDE):
        code, _ = lives.one(point)
        assert code == -signal.SIGKILL
        after = await Kept.read(store)
        seen.add(await state_of_made(store, before, after, point))
        before = after
    assert seen == STEPS.keys()
    assert lives.one(0)[0] == 0
    assert await state_of_made(store, before, await Kept.read(store), 0) is VersionState.ACTIVE
    await store.close()


RULES = """name: Watched
rules:
  - id: marked
    name: The version WHICH
    when: metadata.amount > 100
    score: 60
    reason: MARKED
    explanation: By version WHICH.
    tests:
      - {name: much, event: {eventName: a, externalEventId: e, metadata: {amount: 200}}, fires: true}
      - {name: little, event: {eventName: a, externalEventId: e, metadata: {amount: 2}}, fires: false}
"""


class Steering:
    """Two keys of a tenant whose rules need approval, that put one version after the other into force."""

    def __init__(self, service: Service) -> None:
        self.service = service
        tenant = service.new_tenant("Killed")[0]
        service.cli("tenant", "set", tenant, "--aml", "on", "--rule-approval", "on")
        self.callers = [Caller(service, tenant, self._key(tenant)) for _ in range(2)]
        #: The newest version that was answered for as in force, and that which was asked for last.
        self.answered = self.asked = 0
        self._numbers = itertools.count(1)

    def _key(self, tenant: str) -> str:
        scopes = ("--scope", "rules", "--scope", "decide")
        key: str = self.service.cli("key", "create", "--tenant", tenant, *scopes, "--json")["apiKey"]
        self.service.wait_for(lambda: self.service.get("/api/v1/lists", key=key).status == 200)
        return key

    def life(self) -> None:
        """Make, approve and activate a version. Raises `OSError` where nobody answers."""
        ana, ben = self.callers
        body = {"document": RULES.replace("WHICH", str(next(self._numbers))), "propose": True}
        made = ana.post("/api/v1/aml/rulesets", body)
        assert made.status == 201, made.body
        version = made.json["version"]
        approved = ben.post(f"/api/v1/aml/rulesets/{version}/approve")
        assert approved.status == 200, approved.body
        self.asked = version
        activated = ana.post(f"/api/v1/aml/rulesets/{version}/activate")
        assert activated.status == 200, activated.body
        self.answered = version

    def kill(self, after_s: float) -> None:
        """Kill the service in the middle of lives, and start it anew."""
        assert self.service.process is not None
        killer = threading.Timer(after_s, self.service.process.send_signal, (signal.SIGKILL,))
        killer.start()
        with contextlib.suppress(OSError, http.client.HTTPException, urllib.error.URLError):
            while True:
                self.life()
        killer.join()
        self.service.stop(signal.SIGKILL)
        self.service.start()

    def see(self, event: str) -> None:
        """See that one whole version is in force: by the list, by its document and by what it finds."""
        caller = self.callers[0]
        listed: Any = caller.get("/api/v1/aml/rulesets?limit=100").json["data"]
        (active,) = [one for one in listed if one["state"] == "active"]
        assert active["version"] in (self.answered, self.asked)
        self.answered = self.asked = active["version"]
        assert active["approvedBy"] not in (None, active["author"])
        whole = caller.get("/api/v1/aml/rulesets/active").json
        assert whole["version"] == active["version"]
        assert document_digest(whole["resolved"]) == active["digest"]
        body = {"eventName": "a", "externalEventId": event, "metadata": {"amount": 200}}
        found = caller.post("/api/v1/aml/events", body).json
        assert found["ruleVersion"]["version"] == str(active["version"])
        (alert,) = found["alerts"]
        assert alert["ruleId"] == "marked"
        assert alert["summary"].partition(" This")[0] in whole["document"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_service_that_is_killed_while_versions_change_watches_by_a_whole_one(own_service: Service) -> None:
    steering = Steering(own_service)
    steering.life()
    for kill in range(5):
        steering.kill(0.15 + 0.11 * kill)
        steering.see(f"event-{kill}")
        steering.life()
