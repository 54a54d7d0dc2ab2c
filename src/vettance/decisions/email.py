"""What an e-mail address tells about the account behind it, without asking anyone."""

import functools
import re
from typing import Final, NamedTuple

from disposable_email_domains import blocklist

# The package ships about 10,000 domains of throw-away mailboxes as one set (1.5 MB resident), used as it is.
_DISPOSABLE: Final[frozenset[str] | set[str]] = blocklist

_FREE = """
gmail.com googlemail.com outlook.com hotmail.com live.com msn.com hotmail.co.uk hotmail.fr hotmail.de
hotmail.it outlook.de outlook.fr yahoo.com ymail.com rocketmail.com yahoo.co.uk yahoo.fr yahoo.de
yahoo.it yahoo.es yahoo.co.in yahoo.co.jp yahoo.com.br aol.com icloud.com me.com mac.com proton.me
protonmail.com pm.me tuta.com tutanota.com gmx.de gmx.net gmx.com gmx.at gmx.ch web.de freenet.de
t-online.de mail.com mail.ru inbox.ru list.ru bk.ru yandex.ru yandex.com ya.ru rambler.ru zoho.com
zohomail.com fastmail.com hey.com qq.com foxmail.com 163.com 126.com sina.com naver.com daum.net
hanmail.net orange.fr wanadoo.fr free.fr laposte.net sfr.fr libero.it virgilio.it seznam.cz wp.pl o2.pl
onet.pl interia.pl uol.com.br bol.com.br terra.com.br rediffmail.com bluewin.ch
"""

#: Providers that give a mailbox to anybody. Source: the sign-up pages of the providers themselves; kept short
#: on purpose, because the fact only ever weakens or strengthens another one.
FREE_PROVIDERS: Final = frozenset(_FREE.split())

# Google delivers an address whatever the dots in it, and under both of its domains.
# Source: Gmail Help, "Dots don't matter in Gmail addresses".
_GOOGLE: Final = frozenset({"gmail.com", "googlemail.com"})

_LETTERS: Final = re.compile(r"[a-z]+")
_ALTERNATIONS: Final = re.compile(r"(?<=[a-z])(?=[0-9])|(?<=[0-9])(?=[a-z])")
_CONSONANTS: Final = re.compile(r"[bcdfghjklmnpqrstvwxz]{6,}")
_VOWELS: Final = frozenset("aeiouy")
_ALTERNATIONS_MIN: Final = 4
_RANDOM_CHARS_MIN: Final = 8
_VOWEL_SHARE_MIN: Final = 0.12
_VOWEL_LETTERS_MIN: Final = 10


class EmailFacts(NamedTuple):
    """What one address says. `mailbox` is where its mail really lands, so that aliases share one key."""

    valid: bool
    domain: str | None = None
    mailbox: str | None = None
    disposable: bool = False
    free: bool = False
    plus_tag: bool = False
    digits_ratio: float = 0.0
    local_length: int = 0
    random_local: bool = False


def is_disposable(domain: str) -> bool:
    """Tell whether a domain, or a parent of it, hands out throw-away mailboxes."""
    while domain:
        if domain in _DISPOSABLE:
            return True
        _, dot, parent = domain.partition(".")
        if not dot or "." not in parent:
            return False
        domain = parent
    return False


def looks_random(local: str) -> bool:
    """Tell whether a local part looks typed by a machine; a heuristic, to be added to other evidence.

    At least 8 characters and one of: letters and digits change places four times or more (`a8k2x9qz`), six
    consonants in a row (`y` counts as a vowel, so that Slavic names pass), or ten letters of which less than
    12 % are vowels (English and Romance texts hold about 40 %).
    """
    if len(local) < _RANDOM_CHARS_MIN:
        return False
    if len(_ALTERNATIONS.findall(local)) >= _ALTERNATIONS_MIN or _CONSONANTS.search(local):
        return True
    letters = "".join(_LETTERS.findall(local))
    vowels = sum(letter in _VOWELS for letter in letters)
    return len(letters) >= _VOWEL_LETTERS_MIN and vowels < _VOWEL_SHARE_MIN * len(letters)


@functools.lru_cache(maxsize=2048)
def email_facts(address: str) -> EmailFacts:
    """Return the facts of an address in lower case. Sub-addresses (`name+tag`) are those of RFC 5233."""
    local, at, domain = address.rpartition("@")
    if not at or not local or "." not in domain.strip(".") or " " in address:
        return EmailFacts(valid=False)
    domain = domain.strip(".")
    name, plus, _ = local.partition("+")
    name = name or local
    mailbox_name, mailbox_domain = name, domain
    if domain in _GOOGLE:
        mailbox_name, mailbox_domain = name.replace(".", "") or name, "gmail.com"
    return EmailFacts(
        valid=True,
        domain=domain,
        mailbox=f"{mailbox_name}@{mailbox_domain}",
        disposable=is_disposable(domain),
        free=domain in FREE_PROVIDERS,
        plus_tag=bool(plus) and name != local,
        digits_ratio=sum(character.isdigit() for character in name) / len(name),
        local_length=len(name),
        random_local=looks_random(name),
    )
