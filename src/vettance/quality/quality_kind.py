"""The kinds of rules whose quality can be asked for: fraud, and whatever else counts its logs."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from vettance.quality.answers import QualityAnswer, quality_answer
from vettance.quality.quality_desk import SpanReport


class QualityKind(NamedTuple):
    """One kind of rules: where its endpoint is, the product that a tenant needs, what is answered."""

    path: str
    summary: str
    tag: str
    product: str | None
    answers: Any
    answer: Callable[[SpanReport], msgspec.Struct]


FRAUD_QUALITY: Final = QualityKind(
    "/api/v1/rules/quality", "What each fraud rule is worth", "Rules", None, QualityAnswer, quality_answer
)
