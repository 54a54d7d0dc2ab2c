"""A Redis that answers and can never serve is refused at the start, and named by the doctor."""

from pathlib import Path

import pytest

from tests.live import run_cli
from tests.redis_link.redis_server import PrivateRedis
from vettance.ops.doctor.check import DoctorContext, DoctorLevel
from vettance.ops.doctor.shared_stores import check_redis
from vettance.ops.preflight import probe_redis
from vettance.settings.settings import SettingsError, read_settings


def assert_refused(url: str, said: str, mend: str) -> None:
    environ = {"VETTANCE_REDIS_URL": url}
    settings = read_settings(environ)
    with pytest.raises(SettingsError, match="VETTANCE_REDIS_URL: ") as refusal:
        probe_redis(settings)
    patient = DoctorContext(settings=settings, host="127.0.0.1", port=1, environ=environ, now_ms=0)
    [found] = check_redis(patient)
    assert found.level is DoctorLevel.FAULT
    for one in (str(refusal.value), f"{found.found}. {found.mend}"):
        assert said in one
        assert mend in one


def test_a_number_that_a_redis_does_not_have_is_refused(tmp_path: Path) -> None:
    server = PrivateRedis()
    server.start()
    try:
        url = server.url.replace("/0", "/99")
        assert_refused(url, "no database of this number", "`databases`")
        done = run_cli(tmp_path, "serve", "--port", "0", ok=False, env={"VETTANCE_REDIS_URL": url})
        probe_redis(read_settings({"VETTANCE_REDIS_URL": server.url}))
    finally:
        server.close()
    assert done.returncode == 1
    assert done.stderr.startswith("Error: VETTANCE_REDIS_URL: it has no database of this number. ")
    assert done.stderr.count("\n") == 1


def test_a_redis_that_hides_which_it_is_is_refused() -> None:
    server = PrivateRedis("--rename-command", "INFO", "")
    server.start()
    try:
        assert_refused(server.url, "run_id", "allow INFO")
    finally:
        server.close()


def test_a_redis_that_is_away_or_refuses_for_now_may_yet_serve() -> None:
    server = PrivateRedis()
    server.start()
    try:
        server.command("CONFIG", "SET", "requirepass", "pass-canary")
        probe_redis(read_settings({"VETTANCE_REDIS_URL": server.url}))
    finally:
        server.close()
    probe_redis(read_settings({"VETTANCE_REDIS_URL": server.url}))
