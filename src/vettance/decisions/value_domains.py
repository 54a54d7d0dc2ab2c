"""The values that names of events can have: countries, currencies, addresses, moments, coordinates."""

from typing import Final

from vettance.events.ip_address import canonical_ip
from vettance.reference.countries import NAMES, country_code
from vettance.rules.domain import LOWER_TRIMMED, UPPER_TRIMMED, Domain, Fold


def _codes(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: ISO 4217, list one of 1 January 2026: the codes of currencies and of what is traded like one.
CURRENCIES: Final = _codes(
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD"
    " CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP"
    " GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR"
    " KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN"
    " MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD"
    " SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX"
    " USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD XPF"
    " XPT XSU XTS XUA XXX YER ZAR ZMW ZWG"
)


def _country(text: str) -> str | None:
    return country_code(text) or None


def _address(text: str) -> str:
    return canonical_ip(text) or text


#: As the event says it: in capitals, and nearly always a code of ISO 3166-1.
COUNTRY: Final = Domain(values=frozenset(NAMES), fold=UPPER_TRIMMED, closed=False, nearest=_country)
#: A country that we looked up ourselves: a code of ISO 3166-1 and nothing else.
COUNTRY_FOUND: Final = Domain(values=frozenset(NAMES), nearest=_country)
#: In capitals; what is no currency of a state (BTC, USDT) is sent as well.
CURRENCY: Final = Domain(values=CURRENCIES, fold=UPPER_TRIMMED, closed=False)
EMAIL: Final = Domain(fold=LOWER_TRIMMED)
#: What is no address at all is kept as it was sent.
ADDRESS: Final = Domain(fold=Fold("in canonical form", _address, str.lower))
#: Unix milliseconds since the year 2000; what is below was counted in seconds.
MOMENT: Final = Domain(low=946_684_800_000, closed=False, note="it counts milliseconds, not seconds")
LATITUDE: Final = Domain(low=-90, high=90)
LONGITUDE: Final = Domain(low=-180, high=180)
#: What pages send is measured, and so should not be below 0; nothing enforces it.
MEASURED: Final = Domain(low=0, closed=False)
