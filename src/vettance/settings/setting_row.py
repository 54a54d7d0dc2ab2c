"""A row of the table of settings, of which `docs/settings.md` is made."""

import msgspec


class SettingRow(msgspec.Struct, frozen=True):
    """One row of the table of settings."""

    variable: str
    takes: str
    default: str
    meaning: str
