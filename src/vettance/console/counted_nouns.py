"""What pages count, for one and for several: "1 event", "2 events"."""

from typing import Final

from vettance.console.catalogue import FOLDER, catalogue_of, language_of
from vettance.console.words import Words

#: The words for one and for several of a kind. Other languages have them in their catalogues.
_NOUNS: Final = {
    "alert": (Words("{} alert"), Words("{} alerts")),
    "attempt": (Words("{} attempt"), Words("{} attempts")),
    "case": (Words("{} case"), Words("{} cases")),
    "day": (Words("{} day"), Words("{} days")),
    "decision": (Words("{} decision"), Words("{} decisions")),
    "delivery": (Words("{} delivery"), Words("{} deliveries")),
    "entry": (Words("{} entry"), Words("{} entries")),
    "entry more": (Words("{} more entry"), Words("{} more entries")),
    "event": (Words("{} event"), Words("{} events")),
    "failure in a row": (Words("{} failure in a row"), Words("{} failures in a row")),
    "feature": (Words("{} feature"), Words("{} features")),
    "figure": (Words("{} figure"), Words("{} figures")),
    "fraud": (Words("{} fraud"), Words("{} frauds")),
    "hit": (Words("{} hit"), Words("{} hits")),
    "labelled fraud": (Words("{} labelled fraud"), Words("{} labelled frauds")),
    "line more": (Words("{} more line"), Words("{} more lines")),
    "match": (Words("{} match"), Words("{} matches")),
    "other": (Words("{} other"), Words("{} others")),
    "recovery code": (Words("{} recovery code"), Words("{} recovery codes")),
    "review": (Words("{} review"), Words("{} reviews")),
    "review a day": (Words("{} review a day"), Words("{} reviews a day")),
    "row": (Words("{} row"), Words("{} rows")),
    "rule": (Words("{} rule"), Words("{} rules")),
    "signal": (Words("{} signal"), Words("{} signals")),
    "test": (Words("{} test"), Words("{} tests")),
    "time": (Words("{} time"), Words("{} times")),
    "value": (Words("{} value"), Words("{} values")),
    "value more": (Words("{} more value"), Words("{} more values")),
}


def counted(number: float, shown: str, noun: str, locale: str) -> str:
    """Return a number, shown as the visitor's locale writes it, with a noun of the table behind it."""
    one, several = _NOUNS[noun]
    words = one if number == 1 else several
    said = catalogue_of(language_of(locale, FOLDER), FOLDER).get(words, words)
    return said.replace("{}", shown)
