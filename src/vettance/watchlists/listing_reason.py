"""Reasons of a listing: what a publisher says somebody is listed for, out of everything it says.

Publishers put dates of birth, numbers, links and the history of reviews into one text with the reason.
"""

import re

from vettance.watchlists.entity import Entity

_REASON_LETTERS_MAX = 600
#: Links, references that have been replaced, and what spreadsheets leave of the ends of lines.
_LINKS = re.compile(
    r"(?:web ?link\s*:?\s*)?https?:\s*/{0,2}\S+|\[old reference #?[^\]]*\]|_x000d_", re.IGNORECASE
)
#: A list of one's own says what its owner means.
_OWN = frozenset({"csv", "own", "sample"})
#: Where one statement ends: OFAC writes semicolons, others sentences. No abbreviation ends a sentence here,
#: nor does a letter alone.
_ENDS = re.compile(r"\s*;\s*|(?<=[^\W\d_]{4}[.!?])\s+(?=[^\W\d_a-z])|(?<=[\d)\]”\"][.!?])\s+(?=[^\W\d_a-z])")
#: Statements of facts that an answer shows elsewhere, or that say nothing of why.
_FACTS = re.compile(
    r"^(?:alt\. )?(?:dob|pob|date of birth|place of birth|nationality|citizen|gender|sex|title|passports?"
    r"|national id|identification number|tax id|registration (?:number|id|identification)|company number"
    r"|folio|cedula|c\.?u\.?r\.?p|r\.?f\.?c|ssn|nit|d-?u-?n-?s|unified social credit|legal entity number"
    r"|vessel|imo\b|mmsi|call sign|aircraft|tail number|serial number|swift|bic\b|phone|telephone|tel\b|fax"
    r"|e-?mail|website|web site|a\.?k\.?a|f\.?k\.?a|address|photo|physical description|height|weight|build"
    r"|eye colou?r|hair colou?r|complexion|(?:his |her )?(?:father|mother)[’'s]* ?(?:name|is)|(?:previous|"
    r"other|moroccan|tunisian|algerian|egyptian|italian|indonesian)? ?(?:passport|identity card|id card)"
    r"|un ref|un listing|uk sanctions list ref|reference number|interpol|inter?pol-un|review pursuant"
    r"|the review|listed (?:on|by)|re-?listed|amended|instrument|organization (?:established|type)"
    r"|target type|(?:digital )?currency address|bank (?:account|identifier)|identification|date of listing"
    r"|transactions prohibited|executive order \d+ directive|issuance date|listing date|effective date"
    r"|equity (?:security|ticker)|isin\b|business (?:registration|number)|chinese commercial code"
    r"|additional sanctions information|secondary sanctions risk|cuit|ruc\b|matricula|driver"
    r"|birth certificate"
    r"|[a-z]{2,3}[ie]?\.[0-9.]+$)",
    re.IGNORECASE,
)
_INSTRUMENT = re.compile(
    r"^(?:instrument|autonomous sanctions|listed (?:by|on)|designated under the autonomous|re-?listed)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"^(?:un ref\.?:?\s*)?[A-Z]{2,3}[ie]?\.[A-Z0-9.]*\d\.?\s*(?=[A-Z])", re.IGNORECASE)


def listing_reason(entity: Entity) -> str | None:
    """Return why an entity is listed, as its publisher says; its programmes or legal basis if it does not."""
    if entity.source in _OWN:
        return entity.reason or entity.remarks or None
    said = {
        statement.rstrip(".").casefold(): statement
        for text in (entity.remarks, entity.reason)
        for statement in reversed(_statements(text))
    }
    said = dict(reversed(said.items()))
    legal = [one for one in said.values() if _INSTRUMENT.match(one)]
    told = [one for one in said.values() if one not in legal and not _FACTS.match(one)]
    if told:
        return _joined(told)
    return _joined(list(entity.programmes)) or _joined(legal) or None


def _statements(text: str) -> list[str]:
    text = _LINKS.sub(" ", text)
    parts = (" ".join(_REFERENCE.sub("", part.strip()).split()).strip(" -,") for part in _ENDS.split(text))
    return [part for part in parts if sum(letter.isalpha() for letter in part) > 2]


def _joined(statements: list[str]) -> str:
    text = ""
    for one in statements:
        more = f"{text}{'' if text.endswith(('.', '!', '?')) or not text else ';'} {one}".strip()
        if len(more) > _REASON_LETTERS_MAX:
            break
        text = more
    return text or (statements[0][: _REASON_LETTERS_MAX - 1] + "…" if statements else "")
