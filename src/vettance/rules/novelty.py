"""`novelty`: how much better a value fits anybody than this customer, by a likelihood ratio of counts.

It is put together from aggregates that both engines have, so that nothing new is remembered for it.
"""

import dataclasses
from math import log
from typing import Final

from vettance.rules.expression import Literal, literal
from vettance.velocity.aggregates import AGGREGATES

#: Of an offender's values, half are drawn as often as all of the tenant's customers have them and half from
#: anywhere; of the values that are new for an honest customer, nine in ten are what others have, too.
_OFFENDERS_ORDINARY: Final = 0.5
_HONEST_ORDINARY: Final = 0.9
#: The share of a value from anywhere: what one in a hundred events has is neither rare nor common.
_ANY_SHARE: Final = 0.01
#: How many events of others it takes to believe their shares as much as that one.
_DOUBT: Final = 100.0

#: With an expected share of new values: how many events of a key's own it takes to believe its own share as
#: much, the bounds of what can be expected, and how many values that came back are the key's usual ones
#: (home, work and phone) and say nothing about how often it has others.
_EXPECTED_EVENTS: Final = 6.0
_EXPECTED_LEAST: Final = 0.03
_EXPECTED_MOST: Final = 0.5
_USUAL_VALUES: Final = 3.0

#: The key of counts over everything of a tenant.
EVERYTHING: Final[Literal] = literal("everything")

_DOC: Final = """How new a value is for the key, seen against everybody: the natural logarithm of a
    likelihood ratio, how often others have the value against how often this key has it or a new one. Below
    0 for what the key is used to, 0 without a past, above 0 for what fits others better. A new value weighs
    more the rarer it is among all, and less for a key that often has new ones. Unknown for events that do
    not fulfil `where` themselves. Sums of `novelty` of several values are the ratio of all of them. After
    Freeman et al., "Who Are You? A Statistical Approach to Measuring User Authenticity" (NDSS 2016), with
    the estimate of Witten and Bell (1991) of how often something new is to be expected. `expected=` is for
    values of which people have several and now and then another, such as networks: the share of events in
    which a new one is to be expected of anybody, from a count of yours (taken as 0.03 at least and 0.5 at
    most). It weighs as much as six events of the key, and up to three values that came back are usual.

    Example: `event.logged_in and novelty(country, by=customer.key, within="90d", where=event.logged_in) > 2`
    """

#: How the word is read: as an aggregate of a value.
NOVELTY: Final = dataclasses.replace(
    AGGREGATES["seen"], name="novelty", result="number", default=None, phrase=None, doc=_DOC
)


def novelty(
    seen: bool,
    different: float,
    own: float,
    shared: float,
    everything: float,
    expected: float | None = None,
) -> float:
    """Return the logarithm of the likelihood ratio of a value for a key.

    `seen` says whether the key had the value, `different` how many values it had and `own` how many events;
    `shared` counts the events of anybody with the value, `everything` those of anybody. `expected` is the
    share of events with a new value where the key is any; without it, only the key's own past counts.
    """
    if own <= 0 or different <= 0:
        return 0.0
    # The key had each of its values about equally often, for all that is remembered.
    known = own / different if seen else 0.0
    others = max(everything - own, 0.0)
    share = (min(max(shared - known, 0.0), others) + _ANY_SHARE * _DOUBT) / (others + _DOUBT)
    anybody = _OFFENDERS_ORDINARY * share + (1 - _OFFENDERS_ORDINARY) * _ANY_SHARE
    new = _HONEST_ORDINARY * share + (1 - _HONEST_ORDINARY) * _ANY_SHARE
    if expected is None:
        return log(anybody * (own + different) / (known + different * new))
    usual = max(min(_USUAL_VALUES, own - different, different), 0.0)
    prior = _EXPECTED_EVENTS * min(max(expected, _EXPECTED_LEAST), _EXPECTED_MOST)
    chance = min((different - usual + prior) / (own - usual + _EXPECTED_EVENTS), 0.99)
    return log(anybody / ((1 - chance) / different * seen + chance * new))
