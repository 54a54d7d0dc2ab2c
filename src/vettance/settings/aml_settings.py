"""What rules take for granted of countries and currencies, as operators set it."""

from collections.abc import Mapping
from typing import Final

from vettance.reference.currencies import read_scales
from vettance.reference.jurisdictions import Jurisdictions, read_codes
from vettance.settings.setting_row import SettingRow

#: The setting of scales, and what it was called when AML rules alone went by it.
_SCALES: Final = "VETTANCE_CURRENCY_SCALES"
_FORMER_SCALES: Final = "VETTANCE_AML_SCALES"

AML_ROWS: Final = (
    SettingRow(
        "VETTANCE_AML_CALL_FOR_ACTION",
        "country codes (ISO 3166-1)",
        "KP, IR, MM",
        "Jurisdictions to or from which every transfer alerts (FATF, call for action, 24 October 2025).",
    ),
    SettingRow(
        "VETTANCE_AML_HIGH_RISK",
        "country codes (ISO 3166-1)",
        "AO, BG, BO, CD, CI, CM, DZ, HT, KE, LA, LB, MC, NA, NP, SS, SY, VE, VG, VN, YE",
        "Jurisdictions to or from which large sums alert (FATF, increased monitoring, 24 October 2025).",
    ),
    SettingRow(
        "VETTANCE_AML_SANCTIONED",
        "country codes (ISO 3166-1)",
        "CU, IR, KP",
        "Jurisdictions under a general embargo (OFAC, 31 CFR 510, 515 and 560, October 2025).",
    ),
    SettingRow(
        _SCALES,
        "codes and numbers, such as `JPY=150, *=100`",
        "the table in `docs/aml-pack.md`",
        "How many units of a currency weigh as one dollar or euro among the bounds of rules; `*` is "
        "meant for amounts without a known currency, and is 100 where cents are sent as `amount`. Members "
        "whose name says so (`amountCents`) need none.",
    ),
    SettingRow(
        _FORMER_SCALES,
        "the same",
        f"that of `{_SCALES}`",
        f"The former name of `{_SCALES}`; it counts where that is not set or empty.",
    ),
)


def read_jurisdictions(environ: Mapping[str, str]) -> Jurisdictions:
    """Read the lists of countries and the scales of currencies. Raises `ValueError` with a sentence."""
    known = Jurisdictions()
    variable = _SCALES if environ.get(_SCALES, "").strip() else _FORMER_SCALES
    try:
        scales = read_scales(environ.get(variable, ""))
    except ValueError as error:
        raise ValueError(f"{variable} must give numbers by currency: {error}") from None
    return Jurisdictions(
        _countries(environ, "VETTANCE_AML_CALL_FOR_ACTION", known.call_for_action),
        _countries(environ, "VETTANCE_AML_HIGH_RISK", known.high_risk),
        _countries(environ, "VETTANCE_AML_SANCTIONED", known.sanctioned),
        scales,
    )


def _countries(environ: Mapping[str, str], variable: str, default: frozenset[str]) -> frozenset[str]:
    text = environ.get(variable)
    if text is None:
        return default
    try:
        return read_codes(text)
    except ValueError as error:
        raise ValueError(f"{variable} must list ISO 3166-1 codes: {error}") from None
