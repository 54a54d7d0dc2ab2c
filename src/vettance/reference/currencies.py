"""What amounts weigh in each currency, and what limits laws set in it: dated, replaceable by a setting."""

from collections.abc import Mapping
from typing import Final

#: Units of a currency to a dollar of the United States, rounded to two digits: yearly averages of 2024. What
#: is within a factor of two of the dollar counts as one to one, so that 10,000 stays 10,000 in euros.
_PER_DOLLAR: Final = """
    AED=3.7 ALL=93 AMD=390 AOA=870 ARS=910 BDT=120 BHD=0.38 BIF=2900 BOB=6.9 BRL=5.4 BWP=14
    CDF=2800 CLP=940 CNH=7.2 CNY=7.2 COP=4100 CRC=520 CZK=23 DKK=6.9 DOP=60 DZD=130 EGP=45 ETB=76
    FJD=2.3 GEL=2.7 GHS=15 GNF=8600 GTQ=7.8 HKD=7.8 HNL=25 HUF=370 IDR=16000 ILS=3.7 INR=84
    IQD=1300 IRR=42000 ISK=140 JMD=160 JPY=150 KES=130 KGS=87 KHR=4100 KRW=1400 KWD=0.31 KZT=470
    LAK=22000 LBP=90000 LKR=300 MAD=9.9 MDL=18 MGA=4500 MKD=57 MMK=2100 MNT=3400 MUR=46 MWK=1700
    MXN=18 MYR=4.6 MZN=64 NGN=1500 NIO=37 NOK=11 NPR=130 OMR=0.38 PEN=3.8 PGK=3.9 PHP=57 PKR=280
    PLN=4 PYG=7600 QAR=3.6 RON=4.6 RSD=110 RUB=93 RWF=1300 SAR=3.8 SEK=11 SYP=13000 THB=35 TJS=11
    TND=3.1 TRY=33 TTD=6.8 TWD=32 TZS=2600 UAH=40 UGX=3800 UYU=40 UZS=13000 VND=25000 XAF=610
    XOF=610 XPF=110 YER=250 ZAR=18 ZMW=26
"""
#: From which sum on banks report, or must know their customer, where the law says it in its own currency.
REPORTING_LIMITS: Final[Mapping[str, float]] = {
    "USD": 10_000,  # 31 CFR 1010.311
    "EUR": 10_000,  # Regulation (EU) 2024/1624, article 80
    "CAD": 10_000,  # Proceeds of Crime (Money Laundering) and Terrorist Financing Regulations
    "AUD": 10_000,  # Anti-Money Laundering and Counter-Terrorism Financing Act 2006, section 43
    "NZD": 10_000,  # Anti-Money Laundering and Countering Financing of Terrorism Act 2009
    "CHF": 15_000,  # Anti-Money Laundering Ordinance FINMA
    "JPY": 2_000_000,  # Act on Prevention of Transfer of Criminal Proceeds
    "KRW": 10_000_000,  # Act on Reporting and Using Specified Financial Transaction Information, since 2019
    "INR": 1_000_000,  # Prevention of Money Laundering (Maintenance of Records) Rules 2005, rule 3
    "ZAR": 50_000,  # Financial Intelligence Centre Act 2001, section 28, since 2022
    "CNY": 50_000,  # Administrative Measures on Large-value Transactions, People's Bank of China, 2016
    "TWD": 500_000,  # Regulations Governing Anti-Money Laundering of Financial Institutions
    "PHP": 500_000,  # Anti-Money Laundering Act of 2001, covered transactions
    "IDR": 500_000_000,  # Law 8 of 2010, cash transactions
    "THB": 2_000_000,  # Ministerial Regulation under the Anti-Money Laundering Act, cash
    "MYR": 25_000,  # Cash threshold report of Bank Negara Malaysia, since 2019
    "RUB": 1_000_000,  # Federal Law 115-FZ, since 2022
    "UAH": 400_000,  # Law 361-IX of 2019
}
CURRENCIES_DATE: Final = "2025-10"
_NEAR_ONE: Final = 2.0
#: The scales that hold where no setting says otherwise.
SCALES: Final = {
    code: rate
    for code, _, number in (part.partition("=") for part in _PER_DOLLAR.split())
    if (rate := float(number)) > _NEAR_ONE or rate < 1 / _NEAR_ONE
}


#: Of currencies that have no hundredths, how many decimals their minor unit has (ISO 4217, 2024).
_MINOR_DIGITS: Final = {
    code: digits
    for digits, codes in (
        (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
        (3, "BHD IQD JOD KWD LYD OMR TND"),
        (4, "CLF UYW"),
    )
    for code in codes.split()
}
_DIGITS: Final = 2


def minor_digits(currency: str | None) -> int:
    """Return how many decimals the minor unit of a currency has: 2 for cents, 0 for yen; 2 when unknown."""
    return _MINOR_DIGITS.get(currency, _DIGITS) if currency is not None else _DIGITS


class Currencies:
    """How amounts of a currency compare with the bounds of rules, which are meant for dollars or euros.

    `scales` replace the table's; under `*` is the scale of a currency that neither names, and of amounts
    without one: 100 for a tenant who sends cents.
    """

    def __init__(self, scales: Mapping[str, float] | None = None) -> None:
        self._scales = {**SCALES, **(scales or {})}
        self._other = self._scales.pop("*", 1.0)

    def scale(self, currency: str | None) -> float:
        """Return how many units of a currency weigh as much as one dollar."""
        return self._scales.get(currency, self._other) if currency is not None else self._other


def read_scales(text: str) -> dict[str, float]:
    """Read a list such as `JPY=150, *=100`. Raises `ValueError` naming the first bad part."""
    scales = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        code, _, number = (piece.strip() for piece in part.partition("="))
        if code != "*" and not (code.isascii() and code.isalnum() and 3 <= len(code) <= 8):
            raise ValueError(f"{part} names no currency code")
        try:
            scale = float(number)
        except ValueError:
            scale = 0.0
        if not 1e-9 <= scale <= 1e9:
            raise ValueError(f"{part} gives no number above 0")
        scales[code.upper()] = scale
    return scales
