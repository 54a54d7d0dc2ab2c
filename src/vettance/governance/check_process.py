"""The process that passes documents through the gate for the one that answers: one after the other.

    python -m vettance.governance.check_process

A message is its length in four bytes, big end first, and that many bytes of MessagePack: a `DocumentCall` or
`FeatureCall` on standard input, a `CheckedDocument` or `CheckedFeatures` on standard output. It ends with its
standard input.
"""

import sys
from typing import BinaryIO, Final

import msgspec

from vettance.aml.aml_rule_context import aml_context
from vettance.aml.sql import RULE_SETS
from vettance.decisions.rule_context import fraud_context
from vettance.deployment.connect import connect_velocity
from vettance.governance.checked_document import CheckedDocument, check_document
from vettance.governance.checked_features import CheckedFeatures, FeatureCall, check_feature_document
from vettance.processes.background import be_nicer
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.gate import Context
from vettance.watchlists.search_protocol import LENGTH_BYTES, framed

#: Behind everything that answers requests.
_NICENESS: Final = 10


class DocumentCall(msgspec.Struct, frozen=True, tag="rules"):
    """A document to check: of which pack's kind it is, and which countries AML rules speak of."""

    pack: str
    document: str
    countries: Jurisdictions


def main() -> None:
    """Check documents until nobody asks any more."""
    be_nicer(_NICENESS)
    take, give = sys.stdin.buffer, sys.stdout.buffer
    while (body := _message(take)) is not None:
        call = msgspec.msgpack.decode(body, type=DocumentCall | FeatureCall)
        give.write(framed(msgspec.msgpack.encode(_check(call))))
        give.flush()


def _check(call: DocumentCall | FeatureCall) -> CheckedDocument | CheckedFeatures:
    if isinstance(call, FeatureCall):
        return check_feature_document(call)
    return check_document(call.document, _context(call))


def _message(take: BinaryIO) -> bytes | None:
    length = take.read(LENGTH_BYTES)
    return take.read(int.from_bytes(length)) if len(length) == LENGTH_BYTES else None


def _context(call: DocumentCall) -> Context:
    if call.pack == RULE_SETS.pack:
        return aml_context(call.countries, connect_velocity())
    return fraud_context(connect_velocity)


if __name__ == "__main__":
    main()
