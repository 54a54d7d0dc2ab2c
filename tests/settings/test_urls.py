"""URLs among the settings are read at the start: what cannot be meant is refused, no password repeated."""

import pytest
from click.testing import CliRunner

from vettance.cli import main
from vettance.settings.settings import SettingsError, read_settings
from vettance.settings.urls import hosts_apart

REDIS = "VETTANCE_REDIS_URL"
DATABASE = "VETTANCE_DATABASE_URL"
TRACES = "VETTANCE_TRACES"

REFUSED = {
    REDIS: (
        "foo",
        "http://x",
        "redis://",
        "redis://:6379/0",
        "redis://h:1/abc",
        "redis://h:1/0/1",
        "redis://h/0?db=first",
        "redis://h:notaport",
        "redis://h:0",
        "redis://h:99999/0",
        "redis://[::1/0",
        "redis://user:canary/x@h/0",
        "redis://user:canary@h/abc",
        "redis://user:canary@h:canary/0",
        "redis://user:canary℀@h/0",
        "unix://",
        "redis+cluster://",
        "redis+cluster://h:1,:2",
        "redis+cluster://user:canary@h:1,g:canary",
        "redis+cluster://h:1/2",
        "redis+cluster://h:1?parts=0",
        "redis+cluster://h:1?parts=canary",
    ),
    DATABASE: (
        "mysql://h/x",
        "postgresql://",
        "postgresql:///",
        "postgresql:///x",
        "postgresql://h",
        "postgresql://h/",
        "postgresql://user:canary@/x",
        "postgresql://h:notaport/x",
        "postgresql://h:70000/x",
        "postgresql://h:5432,g:canary/x",
        "postgresql://h/x?port=many",
        "postgresql:///x?host=h:canary",
        "postgresql://user:canary/x@h/x",
        "postgresql://user:canary℀@h/x",
        "postgresql://[::bad/x",
    ),
    TRACES: ("x", "http://", "http://:4318", "http://127.0.0.1:notaport", "ftp://h", "http://[::1:4318"),
}

TAKEN = {
    REDIS: (
        "redis://127.0.0.1:6379/0",
        "redis://h",
        "redis://h/",
        "rediss://user:pass%2F%40@[::1]:6380/15?ssl_cert_reqs=none",
        "redis://:pass@h:1",
        "unix:///run/redis.sock?db=3",
        "redis+cluster://h",
        "rediss+cluster://user:pass%2F%40@[::1]:6380,h:1/0?parts=12&ssl_cert_reqs=none",
    ),
    DATABASE: (
        "postgresql://vettance@db.internal/vettance",
        "postgres://user:p%40ss@[::1]:5432/x?sslmode=require",
        "postgresql://a:1,b:2/x",
        "postgresql:///x?host=/run/postgresql",
        "postgresql://user@/x?host=/run/postgresql&port=5433",
        "postgresql://h/?dbname=x",
    ),
    TRACES: (),
}


@pytest.mark.parametrize(("variable", "url"), [(name, url) for name, urls in REFUSED.items() for url in urls])
def test_a_url_that_cannot_be_meant_is_refused_in_one_line(variable: str, url: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable} [a-z].*$") as refused:
        read_settings({variable: url})
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(("variable", "url"), [(name, url) for name, urls in TAKEN.items() for url in urls])
def test_a_url_that_names_what_it_must_is_taken_as_it_is(variable: str, url: str) -> None:
    settings = read_settings({variable: url})
    assert url in (settings.redis, settings.database_url)


def test_a_variable_that_is_empty_counts_as_unset() -> None:
    names = ("ENV", "LOG_LEVEL", "DATABASE_URL", "REDIS_URL", "TRACES", "METRICS", "SECRET", "SEARCHERS")
    assert read_settings(dict.fromkeys((f"VETTANCE_{name}" for name in names), "")) == read_settings({})


def test_a_command_tells_it_in_one_line() -> None:
    done = CliRunner().invoke(main, ("tenant", "list"), env={DATABASE: "postgresql://"})
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: {DATABASE} must name a host")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "apart"),
    [
        ("postgresql://h/x", ["postgresql://h/x"]),
        ("postgresql://u:p@[::1]:1,g/x?a=b", ["postgresql://u:p@[::1]:1/x?a=b", "postgresql://u:p@g/x?a=b"]),
        ("postgresql:///x?host=h", ["postgresql:///x?host=h"]),
        (
            "postgresql:///x?host=h,g&port=1,2",
            ["postgresql:///x?host=h&port=1", "postgresql:///x?host=g&port=2"],
        ),
        (
            "postgresql:///x?host=h,g&port=1",
            ["postgresql:///x?host=h&port=1", "postgresql:///x?host=g&port=1"],
        ),
    ],
)
def test_the_hosts_of_a_database_are_told_apart(url: str, apart: list[str]) -> None:
    assert hosts_apart(url) == apart
