"""What feedback changes about an event: which of its labels counts, and since when."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vettance.feedback.label import MEANS_FRAUD, Label


class LabelChange(NamedTuple):
    """One line of the log of labels: an event counts as fraud or as legitimate from `at_ms` on (event time).

    `weight` is 1, or -1 for a label that counts no more; it then repeats the moment of that label.
    """

    id: str
    event: str
    fraud: bool
    weight: int
    at_ms: int


def truth_of(labels: Iterable[Label]) -> bool | None:
    """Tell what the labels of an event, oldest first, say together: fraud, legitimate, or nothing.

    What an investigator found out beats a chargeback, which a customer may ask for without having been
    defrauded. Of one class the newest label counts. A refund says neither.
    """
    investigated = charged_back = None
    for label in labels:
        if label is Label.CHARGEBACK:
            charged_back = True
        elif label in MEANS_FRAUD:
            investigated = MEANS_FRAUD[label]
    return charged_back if investigated is None else investigated


def changes_of(
    event: str, known: Sequence[LabelChange], labels: Iterable[Label], at_ms: int
) -> tuple[LabelChange, ...]:
    """Return what the labels of an event, oldest first, change beyond the changes that are known."""
    truth = truth_of(labels)
    current = known[-1] if known else None
    if truth is None or (current is not None and current.fraud is truth):
        return ()
    number = len(known)
    given = LabelChange(f"{event}.{number}", event, truth, 1, at_ms)
    if current is None:
        return (given,)
    taken_back = current._replace(id=given.id, weight=-1)
    return (taken_back, given._replace(id=f"{event}.{number + 1}"))
