"""Offset: which offsets from UTC the clocks of a country show, in any season."""

from typing import Final

#: Countries (ISO 3166-1 alpha-2) by the minutes that their clocks are ahead of UTC, standard and summer time.
#: Source: the IANA time zone database, release 2025b (public domain): `zone1970.tab`, and the offsets of each
#: zone in the middle of every month of 2024 to 2026.
_CLOCKS: Final = (
    ("AS NU", "-660"),
    ("UM", "-660 720"),
    ("CK", "-600"),
    ("PF", "-600 -570 -540"),
    ("US", "-600 -540 -480 -420 -360 -300 -240"),
    ("PN", "-480"),
    ("MX", "-480 -420 -360 -300"),
    ("CA", "-480 -420 -360 -300 -240 -210 -180 -150"),
    ("BZ CR GT HN NI SV", "-360"),
    ("EC", "-360 -300"),
    ("CL", "-360 -300 -240 -180"),
    ("CO JM KY PA PE", "-300"),
    ("BS CU HT TC", "-300 -240"),
    ("BR", "-300 -240 -180 -120"),
    ("AG AI AW BB BL BO BQ CW DM DO GD GP GY KN LC MF MQ MS PR SX TT VC VE VG VI", "-240"),
    ("BM PY", "-240 -180"),
    ("GL", "-240 -180 -120 -60 0"),
    ("AR FK GF SR UY", "-180"),
    ("PM", "-180 -120"),
    ("AQ", "-180 0 120 180 300 420 480 600 720 780"),
    ("GS", "-120"),
    ("CV", "-60"),
    ("PT", "-60 0 60"),
    ("BF CI GH GM GN GW IS LR ML MR SH SL SN ST TG", "0"),
    ("EH FO GB GG IE IM JE MA", "0 60"),
    ("ES", "0 60 120"),
    ("AO BJ CF CG CM DZ GA GQ NE NG TD TN", "60"),
    (
        "AD AL AT BA BE CD CH CZ DE DK FR GI HR HU IT LI LU MC ME MK MT NL NO PL RS SE SI SJ SK SM VA XK",
        "60 120",
    ),
    ("BI BW LS LY MW MZ NA RW SD SS SZ ZA ZM ZW", "120"),
    ("AX BG CY EE EG FI GR IL LB LT LV MD PS RO UA", "120 180"),
    ("RU", "120 180 240 300 360 420 480 540 600 660 720"),
    ("BH BY DJ ER ET IQ JO KE KM KW MG QA SA SO SY TR TZ UG YE YT", "180"),
    ("IR", "210"),
    ("AE AM AZ GE MU OM RE SC", "240"),
    ("TF", "240 300"),
    ("AF", "270"),
    ("MV PK TJ TM UZ", "300"),
    ("KZ", "300 360"),
    ("IN LK", "330"),
    ("NP", "345"),
    ("BD BT IO KG", "360"),
    ("CN", "360 480"),
    ("CC MM", "390"),
    ("CX KH LA TH VN", "420"),
    ("MN", "420 480"),
    ("ID", "420 480 540"),
    ("BN HK MO MY PH SG TW", "480"),
    ("AU", "480 525 540 570 600 630 660"),
    ("JP KP KR PW TL", "540"),
    ("GU MP", "600"),
    ("FM PG", "600 660"),
    ("NC SB VU", "660"),
    ("NF", "660 720"),
    ("FJ MH NR TV WF", "720"),
    ("NZ", "720 765 780 825"),
    ("KI", "720 780 840"),
    ("TK TO WS", "780"),
)

_OFFSETS: Final = {
    country: frozenset(map(int, offsets.split()))
    for countries, offsets in _CLOCKS
    for country in countries.split()
}


def shows_clock_of(country: str, ahead_minutes: float) -> bool | None:
    """Tell whether clocks of a country are ever this many minutes ahead of UTC; None when it is not known."""
    offsets = _OFFSETS.get(country)
    return None if offsets is None else ahead_minutes in offsets
