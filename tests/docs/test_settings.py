"""Settings are documented, or the build fails; and each refuses what it cannot use."""

from pathlib import Path

import pytest

from vettance.settings.secret_key import load_secret
from vettance.settings.settings import SETTINGS, Environment, SettingsError, read_settings

ROOT = Path(__file__).parents[2]


def test_every_setting_is_documented_as_the_table_says() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    for one in SETTINGS:
        assert f"| `{one.variable}` | {one.takes} | {one.default} | {one.meaning} |" in page


def test_every_variable_that_the_code_reads_is_in_the_table() -> None:
    known = {one.variable for one in SETTINGS}
    text = (ROOT / "src" / "vettance" / "settings" / "settings.py").read_text("utf-8")
    named = {word.strip('"') for word in text.split() if word.startswith('"VETTANCE_')}
    assert {name.rstrip('",)') for name in named} <= known | {"VETTANCE_DATA"}


@pytest.mark.parametrize(
    "environ",
    [
        {"VETTANCE_ENV": "prod"},
        {"VETTANCE_SECRET": "short"},
        {"VETTANCE_SECRET": "zz" * 32},
        {"VETTANCE_LOG_LEVEL": "loud"},
        {"VETTANCE_GEOIP_COUNTRY": "/nowhere/at/all.mmdb"},
        {"VETTANCE_HISTORY_MEMORY": "8"},
        {"VETTANCE_BACKGROUND": "high"},
    ],
)
def test_a_setting_that_cannot_be_used_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=next(iter(environ))):
        read_settings(environ)


def test_the_secret_is_made_once_and_read_again(tmp_path: Path) -> None:
    settings = read_settings({}, data=str(tmp_path / "data"))
    assert settings.environment is Environment.DEVELOPMENT
    first = load_secret(settings)
    assert len(first) == 32
    assert load_secret(settings) == first
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret.key"]


def test_a_damaged_secret_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text("not a secret")
    with pytest.raises(SettingsError, match=r"secret\.key"):
        load_secret(read_settings({}, data=str(tmp_path)))
