"""How much a word of a name counts by what it does there, before its rarity."""

from vettance.watchlists.name_analysis import Grammar
from vettance.watchlists.name_token import TokenKind

#: How much a word counts by what it does in a name, before its rarity.
_PERSON_WEIGHTS = {
    TokenKind.NAME: 1.0,
    TokenKind.PATRONYMIC: 0.6,
    TokenKind.GENERIC: 1.0,
    TokenKind.PLACE: 1.0,
    TokenKind.NUMBER: 0.3,
    TokenKind.INITIAL: 0.35,
    TokenKind.KIN: 0.45,
    TokenKind.PARTICLE: 0.08,
    TokenKind.FORM: 0.05,
    TokenKind.TITLE: 0.04,
}
_ORGANIZATION_WEIGHTS = {
    TokenKind.NAME: 1.0,
    TokenKind.PATRONYMIC: 1.0,
    TokenKind.GENERIC: 0.45,
    TokenKind.PLACE: 0.7,
    TokenKind.NUMBER: 0.9,
    TokenKind.INITIAL: 0.6,
    TokenKind.KIN: 0.6,
    TokenKind.PARTICLE: 0.04,
    TokenKind.FORM: 0.04,
    TokenKind.TITLE: 0.3,
}
_CRAFT_WEIGHTS = _ORGANIZATION_WEIGHTS | {
    TokenKind.NUMBER: 1.6,
    TokenKind.TITLE: 0.02,
    TokenKind.GENERIC: 1.0,
    TokenKind.PLACE: 1.0,
}
WEIGHTS = {
    Grammar.PERSON: _PERSON_WEIGHTS,
    Grammar.ORGANIZATION: _ORGANIZATION_WEIGHTS,
    Grammar.CRAFT: _CRAFT_WEIGHTS,
}
#: Kinds that carry a name by themselves.
CARRYING = frozenset(
    {TokenKind.NAME, TokenKind.PATRONYMIC, TokenKind.GENERIC, TokenKind.PLACE, TokenKind.NUMBER}
)
