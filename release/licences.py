"""Which licences a dependency may have, and what the installed ones say."""

import re
from collections.abc import Iterable
from email.message import Message
from importlib.metadata import Distribution
from typing import NamedTuple, cast

#: Licences that let anybody use, change and pass on a program with no more than a notice.
ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "Zlib",
    }
)
#: Distributions with another licence that are looked at and taken all the same, with the reason.
TAKEN = {
    "certifi": ("MPL-2.0", "a file of certificates, passed on unchanged"),
    "hypothesis": ("MPL-2.0", "runs tests, and is passed on to nobody"),
    "pathspec": ("MPL-2.0", "builds packages, and is passed on to nobody"),
}
#: How packages without an SPDX expression spell their licences.
SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_CLASSIFIER = re.compile(r"License :: (?:OSI Approved :: )?(?P<name>.+)")
_NO_LICENCES = {"OSI Approved", "DFSG approved"}


class Licence(NamedTuple):
    """What a distribution says of its licence, as an SPDX expression; None when it says nothing readable."""

    name: str
    version: str
    expression: str | None


def licence_of(distribution: Distribution) -> Licence:
    """Read the licence from the metadata: the expression, else the short field, else the classifiers."""
    said = cast("Message", distribution.metadata)
    name = re.sub(r"[-_.]+", "-", said["Name"]).lower()
    field = (said.get("License") or "").strip()
    field = SPELLINGS.get(field, field)
    named = [
        found["name"]
        for line in said.get_all("Classifier", [])
        if (found := _CLASSIFIER.fullmatch(line)) and found["name"] not in _NO_LICENCES
    ]
    classified = " AND ".join(SPELLINGS.get(each, each) for each in named)
    known = field in ALLOWED or field in {licence for licence, _ in TAKEN.values()}
    expression = said.get("License-Expression") or (field if known else classified or None)
    return Licence(name, distribution.version, expression)


def is_allowed(licence: Licence) -> bool:
    """Tell whether one of the alternatives of an expression has allowed parts only.

    Expressions with brackets are not understood, and so not allowed.
    """
    if licence.expression is None:
        return False
    if licence.name in TAKEN and licence.expression == TAKEN[licence.name][0]:
        return True
    alternatives = licence.expression.split(" OR ")
    return any(all(part.strip() in ALLOWED for part in each.split(" AND ")) for each in alternatives)


def refusals(distributions: Iterable[Distribution]) -> list[str]:
    """Return a line for each distribution whose licence is not allowed."""
    found = sorted({licence_of(each) for each in distributions}, key=lambda licence: licence.name)
    return [
        f"{licence.name} {licence.version}: {licence.expression or 'no licence that can be read'}"
        for licence in found
        if not is_allowed(licence)
    ]
