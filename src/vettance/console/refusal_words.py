"""What a page says of a request that an endpoint refused: its sentence, and what is wrong with each field."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from vettance.console.refused_forms import SaidFaults
from vettance.console.words import Words
from vettance.errors import Refusal

#: Members of the API that forms have by another name.
_FIELDS: Final = {
    "notes": "note",
    "note": "notes",
    "expiresAt": "expiry",
    "until": "expiry",
    "ruleId": "rule_id",
}
#: What members are called that no field of the form stands for.
_WORDS: Final = {
    "inputName": "Name",
    "inputDob": "Date of birth",
    "inputNationality": "Country",
    "externalId": "Your own id",
    "listType": "List",
    "ruleId": "Rule",
    "expiresAt": "For",
    "minScore": "Score from",
    "maxScore": "Score to",
}
#: Sentences of the API that point at members, and words for people who see a form.
_SENTENCES: Final = {
    "The request cannot be processed; see details.": Words("Correct what is marked, and send it again."),
    "The request is not well-formed; see details.": Words("Correct what is marked, and send it again."),
    "must be Unix seconds, as an integer or a decimal number": Words("must be a date and a time"),
    "must be an ISO 3166-1 alpha-2 code": Words("must be the two letters of a country, such as DE"),
}
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


def refusal_words(refused: Refusal | None) -> str:
    """Return it as one text; nothing where nothing was refused."""
    if refused is None:
        return ""
    return " ".join([refused.message, *(f"{member_words(name)}: {text}." for name, text in _faults(refused))])


def member_words(name: str) -> str:
    """Return what people call a member: `inputDob` is "Date of birth", `sampleShare` is "Sample share"."""
    return _WORDS.get(name) or _HUMP.sub(" ", name).lower().capitalize()


def faults_of(refused: Refusal | None, fields: Collection[str], lead: str) -> SaidFaults:
    """Return what is said above a form with some fields that was refused, and below each of them."""
    if refused is None:
        return SaidFaults()
    above, below = [lead, _SENTENCES.get(refused.message, refused.message)], {}
    for name, text in _faults(refused):
        field = name if name in fields else _FIELDS.get(name, "")
        if field in fields:
            below[field] = f"{text[:1].upper()}{text[1:]}."
        else:
            above.append(f"{member_words(name)}: {text}.")
    return SaidFaults(above, below)


def _faults(refused: Refusal) -> Iterator[tuple[str, str]]:
    """Yield the members that are wrong, and what is wrong with each, without its full stop."""
    for name, text in refused.details.items():
        if name not in ("reason", "faults", "requestId") and isinstance(text, str):
            yield name, _SENTENCES.get(text, text).rstrip(".")
