"""Labels: what people say became of decisions, one by one or several at once."""

from typing import Final

from vettance.console.page import WORKERS, ConsolePage, PageAnswer, Visit, own_path
from vettance.console.several_forms import do_each
from vettance.console.words import Words
from vettance.errors import Unprocessable
from vettance.feedback.label import Label

#: The labels in the order in which people choose them.
LABELS: Final = (
    (Label.FRAUD, Words("Fraud")),
    (Label.LEGIT, Words("Legitimate")),
    (Label.CHARGEBACK, Words("Chargeback")),
    (Label.REFUND, Words("Refund")),
    (Label.FALSE_POSITIVE, Words("Wrongly stopped")),
    (Label.TRUE_POSITIVE, Words("Rightly stopped")),
)
AT_ONCE_MAX: Final = 50


async def label_one(visit: Visit) -> PageAnswer:
    """POST /console/decisions/{id}/label."""
    await _label(visit, visit.path["id"])
    return visit.redirect(f"/console/decisions/{visit.path['id']}", notice="labelled")


async def label_several(visit: Visit) -> PageAnswer:
    """POST /console/decisions/label."""
    chosen = list(dict.fromkeys(visit.form.all("decision")))
    if not 1 <= len(chosen) <= AT_ONCE_MAX:
        raise Unprocessable(f"Mark between 1 and {AT_ONCE_MAX} decisions to label at once.")

    async def label(decision_id: str) -> None:
        await _label(visit, decision_id)

    left_out = await do_each(visit, chosen, "POST /console/decisions/{id}/label", label)
    return visit.redirect(own_path(visit.form.get("next")), "labelled", left_out)


async def _label(visit: Visit, decision_id: str) -> None:
    body = {"label": visit.form.get("label"), "notes": visit.form.get("notes") or None}
    await visit.ask("POST", f"/api/v1/feedback/decision/{decision_id}", body=body)


PAGES: Final = (
    ConsolePage("POST", "/console/decisions/label", WORKERS, label_several),
    ConsolePage("POST", "/console/decisions/{id}/label", WORKERS, label_one),
)
