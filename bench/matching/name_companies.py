"""Names of companies: their forms, and changes to the rest of the name."""

# Rows of words are read more easily as one long text.
# ruff: noqa: E501, SIM905

import re

from bench.matching.name_changes import Chance, Change

LIMITED = (
    "LLC|L.L.C.|Limited Liability Company|OOO|O.O.O.|Obshchestvo s Ogranichennoy Otvetstvennostyu|Ltd|Limited|Ltd.|"
    "Co., Ltd.|GmbH|S.R.L.|SARL|S.à r.l.|Sp. z o.o.|s.r.o.|TOV|Pvt Ltd|Private Limited|Pte. Ltd.|d.o.o.|Lda|Ltda.|B.V.|"
    "Kft.|Ltd. Sti.|Limited Sirketi|FZE|FZCO|WLL|Sdn Bhd|EOOD|OOD|TOO|Oy|ApS|AS|MChJ|S. de R.L. de C.V.|UAB|SIA|OÜ"
).split("|")
STOCK = (
    "JSC|J.S.C.|AO|Joint Stock Company|OAO|PAO|PJSC|ZAO|CJSC|OJSC|S.A.|SA|AG|A.S.|A.Ş.|PLC|Public Joint Stock Company|"
    "Aktsionernoe Obshchestvo|Zakrytoe Aktsionernoe Obshchestvo|S.p.A.|S.A. de C.V.|Aktiengesellschaft|Société Anonyme|"
    "Sociedad Anónima|N.V.|AB|Closed Joint Stock Company|Open Joint Stock Company|Private Joint Stock Company|PrJSC|"
    "a.d.|Anonim Sirketi|Public Company Limited|K.K.|AT|PrAT|PAT"
).split("|")
_FORM = "|".join(sorted((re.escape(form) for form in (*LIMITED, *STOCK)), key=len, reverse=True))
_FORM_AT = re.compile(rf"(?:^(?:{_FORM})[\s,]+)|(?:[\s,]+(?:{_FORM})$)", re.IGNORECASE)
_WORDS = re.compile(r"[A-Za-z0-9 &.'-]+")


def company_of(text: str) -> tuple[str, str] | None:
    """Return (name without its company form, form) of a plain Latin name that has one."""
    match = _FORM_AT.search(text)
    if match is None or not _WORDS.fullmatch(text.replace(",", "")):
        return None
    core = (text[: match.start()] + text[match.end() :]).strip(" ,'\"")
    if len(core) < 5 or _FORM_AT.search(core) or "COMPANY" in core.upper() or "CORP" in core.upper():
        return None
    return core, match[0].strip(" ,")


def with_form(core: str, form: str, chance: Chance) -> str:
    return chance.choice([f"{core} {form}", f"{form} {core}", f"{core}, {form}", f"{form} “{core}”"])


_NUMBERS = (
    "first|1|I|1st",
    "second|2|II|2nd",
    "third|3|III|3rd",
    "fourth|4|IV|4th",
    "five|5|V|5th",
    "seven|7|VII|7th",
)
_ABBREVIATED = {
    "international": "Intl.", "national": "Natl", "brothers": "Bros.", "company": "Co.", "corporation": "Corp.",
    "manufacturing": "Mfg", "limited": "Ltd", "development": "Dev.", "industries": "Ind.", "engineering": "Engg",
    "technology": "Tech", "technologies": "Tech.", "services": "Svcs", "group": "Grp", "holdings": "Hldgs",
    "investment": "Inv.", "trading": "Trdg", "enterprises": "Ent.", "association": "Assn", "organization": "Organisation",
    "center": "Centre", "defense": "Defence", "department": "Dept.", "institute": "Inst.", "university": "Univ.",
    "general": "Gen.", "shipping": "Shpg", "transport": "Trans.", "petroleum": "Petr.", "establishment": "Est.",
    "foundation": "Fdn", "laboratory": "Lab", "management": "Mgmt", "commercial": "Comml", "industrial": "Indl",
    "construction": "Constr.", "logistics": "Log.", "government": "Govt", "committee": "Cttee", "exchange": "Exch.",
}  # fmt: skip


def _and(core: str, chance: Chance) -> str | None:
    if not re.search(r"(?i)(?: and | & )", core):
        return None
    return re.sub(
        r"(?i) (?:and|&) ",
        lambda _m: chance.choice([" & ", " and ", " und ", " et ", " + ", " y ", "&"]),
        core,
    )


def _numbers(core: str, chance: Chance) -> str | None:
    words = core.split()
    for place, word in enumerate(words):
        for row in _NUMBERS:
            forms = row.split("|")
            if word.casefold() in (form.casefold() for form in forms if form != "I"):
                words[place] = chance.choice([form for form in forms if form.casefold() != word.casefold()])
                return " ".join(words)
    return None


def _abbreviated(core: str, _chance: Chance) -> str | None:
    words = [_ABBREVIATED.get(word.casefold(), word) for word in core.split()]
    changed = " ".join(words)
    return changed if changed != core else None


def _shuffled(core: str, chance: Chance) -> str | None:
    words = core.split()
    if len(words) < 2 or "of" in core.casefold().split():
        return None
    chance.shuffle(words)
    return " ".join(words)


def _acronym(core: str, _chance: Chance) -> str | None:
    letters = "".join(
        word[0] for word in core.split() if word.casefold() not in ("of", "and", "the", "for", "&")
    )
    return letters.upper() if len(letters) >= 4 else None


#: Changes of an organisation's name without its form.
ORGANIZATION: dict[str, Change] = {
    "and, &, und": _and,
    "number as word, digits, Roman": _numbers,
    "words abbreviated": _abbreviated,
    "word order, organisations": _shuffled,
    "the added": lambda core, _c: f"The {core}",
    "acronym in brackets": lambda core, chance: (
        f"{core} ({found})" if (found := _acronym(core, chance)) else None
    ),
    "acronym alone": _acronym,
    "trading as": lambda core, chance: chance.choice(
        [
            f"Bluewater Ventures t/a {core}",
            f"{core} d/b/a Bluewater",
            f"{core} trading as Bluewater",
            f"{core} (formerly Bluewater)",
            f"{core} f/k/a Bluewater",
            f"Bluewater a/k/a {core}",
        ]
    ),
    "branch, head office": lambda core, chance: (
        f"{core}{chance.choice([' - Head Office', ' (Branch)', ' Group'])}"
    ),
    "letters with points": lambda core, _c: (
        re.sub(r"\b([A-Z]{3,4})\b", lambda m: ".".join(m[1]) + ".", core)
        if re.search(r"\b[A-Z]{3,4}\b", core) and not core.isupper()
        else None
    ),
    "spaces lost": lambda core, _c: core.replace(" ", "") if 1 < len(core.split()) < 4 else None,
}
