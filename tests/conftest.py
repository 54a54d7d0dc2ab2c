"""Fixtures that all tests share."""

import functools
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from tests.live import Caller, Service, started
from tests.redis_link.redis_server import PrivateRedis

pytest_plugins = ["tests.schedule"]

# Shells have what they start in the background ignore Ctrl-C, and it would not reach what the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Where many tests run at once nothing is left of the processor for what only gets the rest.
os.environ.setdefault("VETTANCE_BACKGROUND", "usual")

# How long one example takes says how busy the machine is, not whether the code is right.
# The examples are the same each time; `make fuzz` draws new ones.
settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="FUZZ_SEED" not in os.environ,
)
settings.load_profile("untimed")

#: Who imports one of these starts processes, or servers of databases.
STARTERS = {
    "tests.live",
    "tests.databases",
    "tests.forked_commands",
    "tests.redis_link.redis_server",
    "tests.docs.shell",
    "subprocess",
}

#: A line that imports more than a constant of one of them: the file is slow, which needs no loading to know.
IMPORTS_A_STARTER = re.compile(
    r"^(?:from (?:{0}) import (?![A-Z_]+$)|import (?:{0})\b)".format("|".join(map(re.escape, STARTERS))),
    re.MULTILINE,
)

#: Fixtures that start a process, for whoever asks for them or for what they are made into.
STARTING = {"service", "own_service", "server", "browser"}

#: What tests of several engines are given for those that are servers of other programs.
SERVERS = {"postgres", "redis", "cluster"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave whole files unloaded that `make fast` would leave out test by test."""
    unwanted = config.option.markexpr == "not slow" and collection_path.match("test_*.py")
    return True if unwanted and IMPORTS_A_STARTER.search(collection_path.read_text("utf-8")) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what starts processes to `make test`; `make fast` is for the code that thinks."""
    for item in items:
        module = getattr(item, "module", None)
        fixtures = set(getattr(item, "fixturenames", ()))
        given = getattr(getattr(item, "callspec", None), "params", {}).values()
        if (
            fixtures & STARTING
            or any(isinstance(one, str) and one in SERVERS for one in given)
            or (module is not None and starts_processes(module))
        ):
            item.add_marker("slow")


@functools.cache
def starts_processes(module: ModuleType) -> bool:
    """Tell whether a file of tests has anything that starts a process, by what it imports."""
    return any(
        getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None) in STARTERS
        for value in vars(module).values()
    )


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests that leave it as they found it (each may make tenants of its own)."""
    running = started(tmp_path_factory.mktemp("service"))
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def other(service: Service) -> Caller:
    """Another tenant, who must not see anything of the first."""
    return Caller(service, *service.new_tenant("Other"))


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """A service that the test may stop, kill and start again."""
    running = started(tmp_path)
    yield running
    if running.process is not None:
        running.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def tenant(service: Service) -> Caller:
    """A tenant of the shared service for the tests of one module."""
    return Caller(service, *service.new_tenant())


@pytest.fixture
def server() -> Iterator[PrivateRedis]:
    """A Redis of the test's own, that it may stop, empty and start again."""
    server = PrivateRedis()
    server.start()
    yield server
    server.close()
