"""What a suggestion is asked for: which kind, of which span, and what it is to reach."""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from vettance.backtests.backtest_job import END_MS, read_span
from vettance.wire.body import how, read_body
from vettance.wire.payload import JSON, Faults, Wire

KINDS: Final = ("rules", "threshold", "weights", "calibration")
#: Labelled frauds without which nothing is learned.
FRAUDS_MIN: Final = 50
_LOAD_MAX: Final = 1e9
_ID_CHARS_MAX: Final = 200
#: What the ids of suggestions begin with.
SUGGESTION_PREFIX: Final = "sug"
#: What makes one.
SUGGESTION_PROCESS: Final = "vettance.suggestions.suggestion_process"


class SuggestionOrder(msgspec.Struct, frozen=True):
    """What a job is to suggest: the span in Unix milliseconds; `rule`, `precision`, `load` of a threshold.

    `hold` is of a calibration: the share of ordinary events to hold.
    """

    kind: Literal["rules", "threshold", "weights", "calibration"]
    from_ms: int = 0
    to_ms: int = END_MS
    rule: str | None = None
    precision: float | None = None
    load: float | None = None
    hold: float | None = None


def _kind(text: str) -> str | None:
    return text if text in KINDS else None


def _precision(value: float) -> float | None:
    return value if 0 < value <= 1 else None


def _load(value: float) -> float | None:
    return value if 0 <= value <= _LOAD_MAX else None


def _hold(value: float) -> float | None:
    return value if 0 < value < 1 else None


class SuggestionBody(Wire, frozen=True):
    """What to suggest: `rules`, the `threshold` of a rule, `weights`, or a `calibration`; of which events."""

    EXAMPLE: ClassVar[JSON] = {"kind": "threshold", "ruleId": "login-failures-customer", "precision": 0.9}

    kind: Annotated[
        str,
        msgspec.Meta(
            description="`rules` finds new rules, `threshold` draws the curve of a rule's number, "
            "`weights` fits the scores of the rules in force, `calibration` their numbers to a share "
            "of traffic."
        ),
        how(parse=_kind, message="must be one of rules, threshold, weights, calibration"),
    ]
    rule_id: (
        Annotated[
            str,
            msgspec.Meta(description="For `threshold`: a rule in force that compares with a number."),
            how(chars_max=_ID_CHARS_MAX),
        ]
        | None
    ) = None
    precision: (
        Annotated[
            float,
            msgspec.Meta(gt=0, le=1, description="For `threshold`: the precision to reach."),
            how(check=_precision, message="must be above 0 and at most 1"),
        ]
        | None
    ) = None
    load: (
        Annotated[
            float,
            msgspec.Meta(
                ge=0, le=_LOAD_MAX, description="For `threshold`: the reviews a day to stay within."
            ),
            how(check=_load, message="must be from 0 to 1,000,000,000"),
        ]
        | None
    ) = None
    hold: (
        Annotated[
            float,
            msgspec.Meta(gt=0, lt=1, description="For `calibration`: the share of ordinary events to hold."),
            how(check=_hold, message="must be above 0 and below 1"),
        ]
        | None
    ) = None
    moment_from: Annotated[
        Any,
        msgspec.Meta(description="Event time, Unix seconds or ISO 8601; all events when left out."),
        how(as_sent=True),
    ] = msgspec.field(name="from", default=None)
    moment_to: Annotated[
        Any, msgspec.Meta(description="The end of the span, exclusive."), how(as_sent=True)
    ] = msgspec.field(name="to", default=None)


def read_suggestion(body: JSON) -> SuggestionOrder:
    """Read a body. Raises `Invalid` (400) or `Unprocessable` (422)."""
    faults = Faults()
    said = read_body(body, SuggestionBody, faults)
    from_ms, to_ms = read_span(said.moment_from, said.moment_to, faults)
    of_threshold = {"ruleId": said.rule_id, "precision": said.precision, "load": said.load}
    if not faults.shape:
        if said.kind == "threshold" and said.rule_id is None:
            faults.meaning["ruleId"] = "is required for a threshold"
        if said.precision is not None and said.load is not None:
            faults.meaning["load"] = "give one of precision and load"
        if said.kind == "calibration" and said.hold is None:
            faults.meaning.setdefault("hold", "is required for a calibration")
        if said.kind != "calibration" and said.hold is not None:
            faults.meaning["hold"] = "is for calibrations"
        if said.kind != "threshold":
            faults.meaning |= {
                name: "is for thresholds" for name, value in of_threshold.items() if value is not None
            }
    faults.raise_any()
    kind: Any = said.kind
    return SuggestionOrder(kind, from_ms, to_ms, said.rule_id, said.precision, said.load, said.hold)
