"""What pages are given to work with: the parts of the service that they show or change."""

from collections.abc import Callable, Mapping

import msgspec

from vettance.aml.screening.screening_review import ScreeningReviewer
from vettance.audit.audited_store import AuditedStore
from vettance.console.masking import ValueTokens
from vettance.db.engine import Store
from vettance.history.decision_search import DecisionFinder
from vettance.history.entity_links import EntityLinker
from vettance.history.entity_neighbours import EntityNeighbours
from vettance.history.explain import Explainer
from vettance.history.statistics import DecisionCounter
from vettance.ids import IdSource
from vettance.people.administer import UserAdministration
from vettance.people.credentials import Credentials
from vettance.people.keep_forms import KeptForms
from vettance.people.provider_sign_in import ProviderSignIns
from vettance.people.sign_in import SignIns
from vettance.quality.quality_desk import QualityDesk
from vettance.reviews.bulk_desk import BulkDesk
from vettance.reviews.review_desk import ReviewDesk
from vettance.settings.retention_policy import Policy
from vettance.tenants.keyring import KeyRing
from vettance.web.routing import RouteTable


class ConsoleParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts; `keys` knows the tenants, `proxies` is how many of ours are in front.

    What pages change by themselves they write to `acts`, which keeps the audit log; `names_read` returns the
    names of the values that the condition of a rule reads; `quality` says by the kind of rules what each is
    worth; `keep` says how long the operator keeps data, `live_keys` whether new keys are for production.
    """

    store: Store
    acts: AuditedStore
    ids: IdSource
    keys: KeyRing
    routes: RouteTable
    sessions: SignIns
    kept: KeptForms
    credentials: Credentials
    administration: UserAdministration
    tokens: ValueTokens
    secret: bytes
    explainer: Explainer
    counter: DecisionCounter
    finder: DecisionFinder
    reviews: ReviewDesk
    bulk: BulkDesk
    screenings: ScreeningReviewer
    linker: EntityLinker
    neighbours: EntityNeighbours
    names_read: Callable[[str], tuple[str, ...]]
    quality: Mapping[str, QualityDesk]
    keep: Policy
    provider: ProviderSignIns | None = None
    proxies: int = 0
    live_keys: bool = False
