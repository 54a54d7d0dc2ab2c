"""The doctor finds what is wrong, says the mend, and changes nothing."""

import datetime
import json
import os
import shutil
import signal
import socket
import sqlite3
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tests.databases import absence, database
from tests.databases import ask as change
from tests.live import Service, run_cli, started
from tests.redis_link.redis_server import PrivateRedis
from vettance.db.postgres_schema import month_of
from vettance.ops.doctor.check import DoctorLevel
from vettance.ops.doctor.shared_stores import judge_clock, judge_redis, judge_refusal, judge_settings


def ask(data: Path, *options: str, env: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    port = free_port()
    if "--port" not in options:
        options = (*options, "--port", str(port))
    done = run_cli(data, "doctor", "--json", *options, ok=False, env=env)
    told = json.loads(done.stdout)
    assert all(one.get("mend") for one in told["findings"] if one["level"] != "ok"), "each says the mend"
    return done.returncode, {one["check"]: one for one in told["findings"] if one["level"] != "ok"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor") / "data"
    tenant = run_cli(folder, "tenant", "create", "Shop", "--json")["tenantId"]
    run_cli(folder, "key", "create", "--tenant", tenant, "--json")
    return folder


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "data"))


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return [
        (path.name, path.stat().st_size, path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(("-shm", "-wal"))
    ]


def test_a_sound_folder_is_healthy_and_nothing_of_it_changes(data: Path) -> None:
    before = listing(data)
    code, found = ask(data, "--strict")
    assert (code, found) == (0, {})
    assert listing(data) == before


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    code, found = ask(tmp_path / "none")
    assert code == 0
    assert set(found) == {"data folder"}
    assert ask(tmp_path / "none", "--strict")[0] == 1
    assert not (tmp_path / "none").exists()


def test_rights_that_are_too_wide_are_told_with_their_mend(data: Path) -> None:
    data.chmod(0o755)
    (data / "secret.key").chmod(0o644)
    code, found = ask(data)
    assert code == 0
    assert "chmod 700" in found["data folder"]["mend"]
    assert "chmod 600" in found["secret"]["mend"]


def test_a_secret_that_is_gone_is_a_fault(data: Path) -> None:
    (data / "secret.key").unlink()
    code, found = ask(data)
    assert code == 1
    assert "Put the file back" in found["secret"]["mend"]
    assert ask(data, env={"VETTANCE_ENV": "production"})[1]["secret"]["level"] == "fault"


def test_a_secret_that_is_not_the_one_of_the_store_is_a_fault(data: Path) -> None:
    code, found = ask(data, env={"VETTANCE_SECRET": "ab" * 32})
    assert code == 1
    assert "VETTANCE_SECRET is not the secret that this store was made with" in found["secret"]["found"]
    assert "--other-secret" in found["secret"]["mend"]


def test_a_setting_that_cannot_be_read_is_a_fault(data: Path) -> None:
    code, found = ask(data, env={"VETTANCE_PROXIES": "many"})
    assert code == 1
    assert "VETTANCE_PROXIES" in found["settings"]["found"]


def test_a_store_that_is_damaged_is_a_fault(data: Path) -> None:
    (data / "vettance.db").write_bytes(b"no store at all " * 1000)
    code, found = ask(data)
    assert code == 1
    assert "not a Vettance store" in found["store"]["found"]
    assert "restore" in found["store"]["mend"]


def test_a_store_of_a_newer_program_is_a_fault_and_pending_migrations_are_not(data: Path) -> None:
    with closing(sqlite3.connect(data / "vettance.db")) as store:
        newest = store.execute("SELECT version, digest FROM schema_version ORDER BY version DESC").fetchone()
        store.execute("DELETE FROM schema_version WHERE version = ?", (newest[0],))
        store.commit()
    code, found = ask(data)
    assert (code, found["store"]["level"]) == (0, "warning")
    with closing(sqlite3.connect(data / "vettance.db")) as store:
        store.execute("INSERT INTO schema_version VALUES (?, 'x', ?, 0)", newest)
        store.execute("INSERT INTO schema_version VALUES (9999, '9999_breaking_x', 'x', 0)")
        store.commit()
    code, found = ask(data)
    assert (code, found["store"]["level"]) == (1, "fault")


def test_an_event_from_the_future_says_that_the_clock_is_wrong(data: Path) -> None:
    future_ms = (int(time.time()) + 3600) * 1000
    with closing(sqlite3.connect(data / "vettance.db")) as store:
        store.execute(
            "INSERT INTO event (id, tenant, source, received_at_ms, occurred_at_ms, sent) "
            "VALUES ('evt_1', 'ten_1', 'evaluate', ?, ?, x'7b7d')",
            (future_ms, future_ms),
        )
        store.commit()
    code, found = ask(data)
    assert code == 1
    assert "ahead of the clock" in found["clock"]["found"]


@pytest.mark.parametrize(
    ("state", "mend"), [("reading", "same file again"), ("waiting", "Start a server"), ("decided", None)]
)
def test_an_import_that_stands_still_is_told_with_its_mend(data: Path, state: str, mend: str | None) -> None:
    with closing(sqlite3.connect(data / "vettance.db")) as store:
        store.execute(
            "INSERT INTO import_run (tenant, id, kind, state, begun_at_ms) "
            "VALUES ('ten_1', 'imp_1', 'fraud', ?, ?)",
            (state, (time.time() - 2 * 3600) * 1000),
        )
        store.commit()
    code, found = ask(data)
    assert code == 0
    assert (mend is None) == ("imports" not in found)
    assert mend is None or mend in found["imports"]["mend"]


def test_screening_without_a_list_is_a_fault_and_a_stale_list_a_warning(data: Path) -> None:
    tenant = run_cli(data, "tenant", "list", "--json")[0]["tenantId"]
    run_cli(data, "tenant", "set", tenant, "--aml", "on", "--json")
    code, found = ask(data)
    assert (code, found["watchlists"]["level"]) == (0, "warning")
    run_cli(data, "aml", "set", "--tenant", tenant, "--inline-screening", "on", "--json")
    code, found = ask(data)
    assert code == 1
    assert "1 tenant screens names" in found["watchlists"]["found"]
    assert "watchlist refresh --source" in found["watchlists"]["mend"]
    run_cli(data, "watchlist", "import", "--source", "sample")
    assert ask(data) == (0, {})
    with closing(sqlite3.connect(data / "vettance.db")) as store:
        store.execute("UPDATE watchlist_version SET source = 'un_sc', checked_at_ms = 1")
        store.commit()
    found = ask(data)[1]
    assert "un_sc" in found["watchlists"]["found"]


def test_the_file_of_a_tenants_own_list_that_is_gone_is_a_fault(data: Path, tmp_path: Path) -> None:
    tenant = run_cli(data, "tenant", "list", "--json")[0]["tenantId"]
    (tmp_path / "own.csv").write_text("name\nIvan PETROV\n")
    arguments = ("--source", "csv", "--tenant", tenant, str(tmp_path / "own.csv"))
    run_cli(data, "watchlist", "import", *arguments)
    run_cli(data, "tenant", "set", tenant, "--aml", "on", "--json")
    assert ask(data) == (0, {}), "a list of its own is enough"
    shutil.rmtree(data / "watchlists")
    code, found = ask(data)
    assert (code, found["watchlists"]["level"]) == (1, "fault")
    assert tenant in found["watchlists"]["found"]
    assert not (data / "watchlists").exists()


def test_a_port_that_is_taken_is_a_fault_unless_a_server_of_ours_has_it(data: Path, service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, found = ask(data, "--port", str(other.getsockname()[1]))
    assert code == 1
    assert "--port" in found["port"]["mend"]
    assert ask(data, "--port", service.base_url.rpartition(":")[2]) == (0, {})


def test_an_address_of_metrics_that_cannot_be_had_is_a_fault(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        for where in (f"127.0.0.1:{other.getsockname()[1]}", "nohost.invalid:9464"):
            code, found = ask(data, env={"VETTANCE_METRICS": where})
            assert code == 1
            told = found["metrics address"]["found"]
            assert told.startswith(f"VETTANCE_METRICS: cannot listen on {where}: ")
    assert ask(data, env={"VETTANCE_METRICS": f"127.0.0.1:{free_port()}"}) == (0, {})


def test_an_address_for_both_the_metrics_and_the_api_is_a_fault_and_nothing_starts(data: Path) -> None:
    port = free_port()
    for host in ("127.0.0.1", "localhost", "0.0.0.0"):
        env = {"VETTANCE_METRICS": f"{host}:{port}"}
        said = f"VETTANCE_METRICS: cannot listen on {host}:{port}: the API does; name another port"
        code, found = ask(data, "--port", str(port), env=env)
        assert (code, found["metrics address"]["found"]) == (1, said)
        done = run_cli(data, "serve", "--port", str(port), ok=False, env=env)
        assert (done.returncode, done.stderr) == (1, f"Error: {said}\n")
    both = {"VETTANCE_METRICS": f"127.0.0.1:{port}", "VETTANCE_CONSOLE": f"localhost:{port}"}
    done = run_cli(data, "serve", "--port", "0", ok=False, env=both)
    said = f"VETTANCE_CONSOLE: cannot listen on localhost:{port}: VETTANCE_METRICS does; name another port"
    assert done.stderr == f"Error: {said}\n"


def test_an_empty_file_is_no_store(data: Path) -> None:
    for path in data.glob("vettance.db*"):
        path.unlink()
    (data / "vettance.db").touch(0o600)
    code, found = ask(data)
    assert code == 1
    assert found["store"]["found"] == f"{data}/vettance.db is empty"
    done = run_cli(data, "tenant", "list", ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: there is no store in {data}; ")


def test_the_metrics_of_a_server_of_ours_are_no_fault(tmp_path: Path) -> None:
    env = {"VETTANCE_METRICS": f"127.0.0.1:{free_port()}"}
    service = started(tmp_path, **env)
    try:
        told = ask(tmp_path, "--port", service.base_url.rpartition(":")[2], env=service.env)
        assert told == (0, {})
    finally:
        assert service.stop() == 0


def test_a_file_of_addresses_that_is_none_is_a_fault(data: Path) -> None:
    for name in ("COUNTRY", "ASN"):
        variable, junk = f"VETTANCE_GEOIP_{name}", data.parent / "junk.mmdb"
        junk.write_bytes(b"junk" * 100)
        code, found = ask(data, env={variable: str(junk)})
        assert code == 1
        assert found["GeoIP files"]["found"].startswith(f"{variable}: {junk}: ")


def test_what_is_reachable_and_should_not_be_is_told(data: Path) -> None:
    open_doors = {"VETTANCE_UNSAFE_WEBHOOKS": "1", "VETTANCE_METRICS": f"0.0.0.0:{free_port()}"}
    code, found = ask(data, env=open_doors)
    assert code == 0
    assert {"webhooks", "metrics"} <= set(found)


def test_a_redis_that_does_not_answer_is_a_fault_that_tells_no_password(data: Path) -> None:
    url = f"redis://user:pass-canary@127.0.0.1:{free_port()}/0"
    done = run_cli(
        data, "doctor", "--port", str(free_port()), ok=False, env={"VETTANCE_REDIS_URL": url, **os.environ}
    )
    assert done.returncode == 1
    assert "VETTANCE_REDIS_URL" in done.stdout
    assert "pass-canary" not in done.stdout + done.stderr


def test_a_database_that_does_not_answer_is_a_fault_that_tells_no_password(data: Path) -> None:
    url = f"postgresql://user:pass-canary@127.0.0.1:{free_port()}/x"
    done = run_cli(data, "doctor", "--port", str(free_port()), ok=False, env={"VETTANCE_DATABASE_URL": url})
    assert done.returncode == 1
    assert "VETTANCE_DATABASE_URL names" in done.stdout
    assert "pass-canary" not in done.stdout + done.stderr


@pytest.mark.skipif(absence() is not None, reason="no PostgreSQL here")
def test_a_database_is_asked_whether_its_schema_is_the_newest(data: Path) -> None:
    with database() as url:
        env = {"VETTANCE_DATABASE_URL": url}
        assert ask(data, env=env)[1]["store"]["level"] == "warning"
        run_cli(data, "migrate", "--json", env=env)
        code, found = ask(data, env=env)
        told = [one["found"] for one in found.values() if "autovacuum" not in one["found"]]
        without_fsync = "fsync is off" in told  # As the private server of the tests has it.
        assert (code, told) == ((1, ["fsync is off"]) if without_fsync else (0, []))
        done = run_cli(data, "backup", str(data / "copy"), ok=False, env=env)
    assert "pg_dump" in done.stderr


@pytest.mark.skipif(absence() is not None, reason="no PostgreSQL here")
def test_what_waits_in_a_database_and_what_stands_in_it_is_found_as_in_a_file(data: Path) -> None:
    future_ms = (int(time.time()) + 3600) * 1000
    month = f"{month_of(datetime.datetime.now(datetime.UTC), 2):%Y_%m}"
    with database() as url:
        env = {"VETTANCE_DATABASE_URL": url}
        tenant = run_cli(data, "tenant", "create", "Shop", "--json", env=env)["tenantId"]
        run_cli(data, "tenant", "set", tenant, "--aml", "on", "--json", env=env)
        run_cli(data, "key", "create", "--tenant", tenant, "--json", env=env)
        for sql in (
            "INSERT INTO event (id, tenant, source, received_at_ms, occurred_at_ms, sent) "
            f"VALUES ('evt_1', 'ten_1', 'evaluate', {future_ms}, {future_ms}, '{{}}')",
            "INSERT INTO job (id, tenant, received_at_ms, request_id, quiet, sent, state) "
            "VALUES ('job_1', 'ten_1', 1, 'r', 0, '{}', 'accepted')",
            "INSERT INTO subscription (id, tenant, slot, url, event_types, secret, created_at_ms, "
            "updated_at_ms) VALUES ('whs_1', 'ten_1', '0000', 'https://a.example', '', 'no secret', 1, 1)",
            f"DROP TABLE event_{month}",
        ):
            change(url, sql)
        code, found = ask(data, env=env)
        assert code == 1
        assert "ahead of the clock" in found["clock"]["found"]
        assert "ten minutes" in found["jobs"]["found"]
        assert "no list is loaded" in found["watchlists"]["found"]
        assert "former" in found["webhook secrets"]["mend"]
        assert month.replace("_", "-") in found["PostgreSQL"]["found"]
        (data / "secret.key").unlink()
        assert "API keys" in ask(data, env=env)[1]["secret"]["found"]


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        ({}, 0),
        ({"synchronous_commit": "remote_apply"}, 0),
        ({"synchronous_commit": "off"}, 1),
        ({"fsync": "off", "full_page_writes": "off"}, 2),
    ],
)
def test_settings_that_can_lose_a_commit_are_faults(changed: dict[str, str], faults: int) -> None:
    sound = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "on"}
    found = list(judge_settings(sound | changed))
    assert [one.level for one in found] == [DoctorLevel.FAULT] * faults
    assert all(name in "".join(one.found for one in found) for name in changed if faults)


def test_a_database_that_never_cleans_up_is_a_warning() -> None:
    sound = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
    [one] = judge_settings(sound | {"autovacuum": "off"})
    assert (one.level, one.found) == (
        DoctorLevel.WARNING,
        "autovacuum is off: its tables grow and get slower",
    )


def test_clocks_that_differ_are_told() -> None:
    asked_ms, answered_ms = 1_000_000, 1_020_000  # It took its time to answer; that is not the clock's fault.
    for theirs_ms in (996_000, 1_010_000, 1_024_000):
        assert not list(judge_clock("Redis", theirs_ms, asked_ms, answered_ms))
    for theirs_ms, said in ((940_000, "60 s behind"), (1_050_000, "30 s ahead of")):
        [one] = judge_clock("Redis", theirs_ms, asked_ms, answered_ms)
        assert one.found == f"its clock is {said} this one"


def test_a_redis_that_evicts_is_a_fault(data: Path) -> None:
    server = PrivateRedis()
    server.start()
    try:
        env = {"VETTANCE_REDIS_URL": server.url}
        assert ask(data, env=env) == (0, {})
        server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        code, found = ask(data, env=env)
    finally:
        server.close()
    assert code == 1
    assert "noeviction" in found["Redis"]["mend"]
    assert [one.found for one in judge_redis("6.2.1", {"maxmemory-policy": None})] == ["it is version 6.2.1"]


def test_a_redis_that_takes_no_writes_is_a_fault(data: Path) -> None:
    server = PrivateRedis()
    server.start()
    try:
        env = {"VETTANCE_REDIS_URL": server.url}
        server.command("CONFIG", "SET", "maxmemory", "1000")
        assert "full" in ask(data, env=env)[1]["Redis"]["found"]
        server.command("CONFIG", "SET", "maxmemory", "0")
        server.command("REPLICAOF", "127.0.0.1", str(free_port()))
        code, found = ask(data, env=env)
    finally:
        server.close()
    assert code == 1
    assert "primary" in found["Redis"]["mend"]


def test_why_a_redis_refuses_is_told_with_its_mend(data: Path) -> None:
    server = PrivateRedis()
    server.start()
    try:
        server.command("ACL", "SETUSER", "clerk", "on", ">pass-canary", "~*", "+ping")
        server.command("CONFIG", "SET", "requirepass", "pass-canary")
        named = server.url.replace("//", "//clerk:{}@")
        refused = {"password": server.url, "user and password": named.format("wrong-canary")}
        for said, url in {**refused, "may not ask": named.format("pass-canary")}.items():
            code, found = ask(data, env={"VETTANCE_REDIS_URL": url})
            assert code == 1
            assert said in found["Redis"]["found"]
            assert "canary" not in str(found)
    finally:
        server.close()
    said, mend = judge_refusal(ResponseError("DENIED Redis is running in protected mode because …"))
    assert "protected mode" in said
    assert "password" in mend


def test_a_secret_of_another_deployment_is_found_out(tmp_path: Path, own_service: Service) -> None:
    hook = {"url": "https://hooks.example.com/x", "eventTypes": ["EVENT_RISK_EVALUATED"]}
    assert own_service.post("/api/v1/webhooks/subscriptions", hook).status == 201
    assert own_service.stop() == 0
    assert ask(own_service.data, env=own_service.env)[0] == 0
    (own_service.data / "secret.key").write_text("ab" * 32)
    code, found = ask(own_service.data, env=own_service.env)
    assert code == 1
    assert "former" in found["webhook secrets"]["mend"]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_events_of_both_products_can_be_read_again_and_a_damaged_one_is_named(
    tmp_path: Path, engine: str
) -> None:
    if engine == "postgres" and absence() is not None:
        pytest.skip("no PostgreSQL here")
    with database() if engine == "postgres" else nullcontext() as url:
        service = started(tmp_path, **({"VETTANCE_DATABASE_URL": url} if url else {}))
        try:
            service.cli("tenant", "set", service.tenant_id, "--aml", "on", "--json")
            service.wait_for(lambda: service.get("/api/v1/aml/cases").status == 200)
            assert service.post("/api/v1/decisions/evaluate", {"eventName": "login"}).status == 200
            event = {"eventName": "transfer.sent", "externalEventId": "e-1", "customer": {"externalId": "c"}}
            assert service.post("/api/v1/aml/events", event).status == 200
        finally:
            assert service.stop() == 0
        levels = read_again(service)
        assert (levels["events"]["level"], levels["AML events"]["level"]) == ("ok", "ok")
        service.rows("UPDATE aml_event SET sent = '[]'")
        [(damaged,)] = service.rows("SELECT id FROM aml_event")
        told = read_again(service)["AML events"]
        assert told["level"] == "warning"
        assert f"{damaged} of {service.tenant_id}" in told["found"]


def read_again(service: Service) -> dict[str, Any]:
    done = run_cli(service.data, "doctor", "--json", "--port", str(free_port()), ok=False, env=service.env)
    return {one["check"]: one for one in json.loads(done.stdout)["findings"]}


def test_the_server_that_runs_on_the_folder_is_found_on_whatever_port(own_service: Service) -> None:
    done = run_cli(own_service.data, "doctor", ok=False, env=own_service.env)
    assert f"one answers on {own_service.base_url} (" in done.stdout
    own_service.stop(signal.SIGKILL)
    done = run_cli(own_service.data, "doctor", ok=False, env=own_service.env)
    assert "none runs on this folder" in done.stdout
    own_service.start()
    assert own_service.stop() == 0
    assert not (own_service.data / "server.json").exists()


def test_a_database_that_cannot_be_reached_is_named_with_the_reason(tmp_path: Path) -> None:
    where = f"127.0.0.1:{free_port()}"
    env = {"VETTANCE_DATABASE_URL": f"postgresql://user:pass-canary@{where}/x"}
    done = run_cli(tmp_path, "tenant", "list", ok=False, env=env)
    assert done.returncode == 1
    assert done.stderr == f"Error: PostgreSQL cannot be reached ({where}: Connection refused)\n"
    env = {"VETTANCE_DATABASE_URL": "postgresql://user:pass-canary@no-such-host.invalid/x"}
    done = run_cli(tmp_path, "tenant", "list", ok=False, env=env)
    assert "no-such-host.invalid:5432" in done.stderr
    assert "canary" not in done.stderr
