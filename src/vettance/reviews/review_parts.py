"""Puts the parts of reviews together."""

from collections.abc import Callable
from typing import NamedTuple

from vettance.db.engine import Store
from vettance.decisions.evaluate import Evaluator
from vettance.feedback.feedback_port import TakeFeedback
from vettance.ids import IdSource
from vettance.reviews.api import ReviewDoors
from vettance.reviews.bulk_desk import BulkDesk, BulkKeeper
from vettance.reviews.open_review import ReviewOpener
from vettance.reviews.review_desk import ReviewDesk, ReviewKeeper
from vettance.tenants.tenant import Tenant


class ReviewParts(NamedTuple):
    """What opens reviews, what changes them, the endpoints, and the background work; `bulk`: many at once."""

    opener: ReviewOpener
    desk: ReviewDesk
    doors: ReviewDoors
    keeper: ReviewKeeper
    bulk: BulkDesk
    bulk_keeper: BulkKeeper


def assemble_reviews(
    store: Store,
    ids: IdSource,
    evaluator: Evaluator,
    take_label: TakeFeedback,
    tenant_of: Callable[[str], Tenant | None],
) -> ReviewParts:
    """Return the parts, and have the decisions of an evaluator open reviews."""
    opener, desk = ReviewOpener(tenant_of), ReviewDesk(store, ids, take_label, evaluator.lists)
    evaluator.open_reviews(opener)
    doors, keeper = ReviewDoors(store, desk), ReviewKeeper(store, desk, tenant_of)
    return ReviewParts(opener, desk, doors, keeper, BulkDesk(store, ids), BulkKeeper(store))
