"""The memory of AML: what rules count between events, and the graph of recent transfers, kept as one."""

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

import msgspec

from vettance.aml.aml_event import AmlEvent, TransferHistory, read_taken_aml_event
from vettance.aml.aml_snapshot import read_snapshot, write_snapshot
from vettance.aml.parties import OWN_MS, OwnCustomer, Parties
from vettance.aml.peers import grown
from vettance.aml.used_ids import UsedIds
from vettance.clock import DAY_MS, HOUR_MS
from vettance.decisions.active_rulesets import MEMORY, ask
from vettance.fairness.skipped_rows import Skipped
from vettance.rules.compiler import CompiledRules, Facts
from vettance.rules.unknowns import Failure, failures_of, message_of
from vettance.telemetry.meter_table import Rows
from vettance.velocity import port
from vettance.velocity.aggregates import AGGREGATES, Summary
from vettance.velocity.port import Observation, Plan, Value, VelocityAnswer
from vettance.wire.payload import decode

PAIR_MS: Final = 90 * DAY_MS  # Who has not paid somebody for so long pays a new counterparty.
SILENCE_DAYS: Final = 30.0  # After so long a silence a party counts as coming back.
AWAKE_MS: Final = 30 * DAY_MS
BENFORD_MIN: Final = 50

#: Newcomb (1881), Benford (1938): how often natural amounts begin with each first digit.
_BENFORD: Final = tuple(math.log10(1 + 1 / digit) for digit in range(1, 10))


class SnapshotVelocity(port.Velocity, Protocol):
    """An engine that can be written down and read back, and asked without an event."""

    def dump(self, tenant: str) -> Iterator[bytes]:
        """Return a snapshot of a tenant's memory as it is at the moment of the call."""

    def load(self, tenant: str, plan: Plan, chunks: Iterable[bytes]) -> None:
        """Give a tenant the memory of a snapshot. Raises `SnapshotRefused`."""

    def look(self, tenant: str, at_ms: int, seen: Observation) -> VelocityAnswer:
        """Read every aggregate as of a moment (Unix milliseconds) that was reached, and record nothing."""


#: What is said of the newest observation or of the one before.
_OF_THE_NEWEST: Final = (Summary.NEWEST, Summary.OWN)

#: What the graph is called where it could not be asked about an event.
TRAIL: Final = "trail"


class WatchedEvent(NamedTuple):
    """An event with what the graph says of it, its facts, the answers, and what could not be computed.

    `later` are the answers of a late event as of the newest transfers of its two sides.
    """

    event: AmlEvent
    facts: Facts
    answer: VelocityAnswer
    unknown: list[Failure]
    later: tuple[VelocityAnswer, ...] = ()

    @property
    def answers(self) -> list[tuple[Value, ...]]:
        """What rules are run on: as of the event's own time, and as of each later moment."""
        return [self.answer.values, *(one.values for one in self.later)]


class AmlMemory:
    """A state engine (`state.port.Velocity`) that also follows the money; `velocity` remembers the rest.

    One call of `follow` and one of `observe` for each event, with nothing awaited between the two. `known`
    are the ids of the events that a tenant has ever reported; they belong to no rule set.
    """

    def __init__(self, velocity: SnapshotVelocity, skipped: Skipped | None = None) -> None:
        self._skipped = skipped or Skipped()
        self._velocity = velocity
        self._books: dict[str, Parties] = {}
        self.known: dict[str, UsedIds] = {}

    def install(self, tenant: str, plan: Plan) -> None:
        """Give a tenant an empty memory for a plan; what was remembered for it before is dropped."""
        self._velocity.install(tenant, plan)
        self._books[tenant] = Parties()

    def uninstall(self, tenant: str) -> None:
        """Drop everything remembered for a tenant; one without a memory is left as it is."""
        self._velocity.uninstall(tenant)
        self._books.pop(tenant, None)
        self.known.pop(tenant, None)

    def forget_before(self, tenant: str, moment_ms: int) -> None:
        """Take note that a tenant's memory may lack events before a moment."""
        self._velocity.forget_before(tenant, moment_ms)

    def share_known(self, tenant: str, coming: str) -> None:
        """Let a tenant know the ids that came with the memory `coming`, if it knows none yet."""
        known = self.known.pop(coming, None)
        if known is not None:
            self.known.setdefault(tenant, known)

    def adopt(self, tenant: str, coming: str) -> None:
        """Give a tenant the memory that was filled under the name `coming`; its old memory is dropped."""
        self._velocity.adopt(tenant, coming)
        self._books[tenant] = self._books.pop(coming)

    def dump(self, tenant: str) -> Iterator[bytes]:
        """Return a snapshot of a tenant's memory as it is at the moment of this call."""
        known = self.known[tenant].dump()
        return write_snapshot(self._books[tenant].hold(), known, self._velocity.dump(tenant))

    def load(self, tenant: str, plan: Plan, chunks: Iterable[bytes]) -> None:
        """Give a tenant the memory of a snapshot. Raises `SnapshotRefused`; nothing has changed then."""
        book, known, rest = read_snapshot(chunks)
        self._velocity.load(tenant, plan, rest)
        self._books[tenant], self.known[tenant] = book, known

    def observe(self, tenant: str, event_id: str, at_ms: int, seen: Observation) -> VelocityAnswer:
        """Read every aggregate as of the events observed before, then record this event."""
        return self._velocity.observe(tenant, event_id, at_ms, seen)

    def replay(
        self, tenant: str, compiled: CompiledRules, event_id: str, received_at_ms: int, sent: bytes
    ) -> None:
        """Take up an event of the log, as it was taken up when it was watched; one that cannot be read again
        (the bounds were narrowed since, or it is damaged) stays in the log only.
        """
        try:
            event = read_taken_aml_event(decode(sent), received_at_ms)
        except Exception as error:  # noqa: BLE001  One row must not keep a process from its start.
            self._skipped.note(Rows.AML_EVENT, tenant.partition("#")[0], event_id, error)
            return
        self.take(tenant, compiled, event_id, event)

    def take(self, tenant: str, compiled: CompiledRules, event_id: str, event: AmlEvent) -> WatchedEvent:
        """Follow the money of an event, read its facts, ask about it and record it.

        What cannot be computed is unknown, live and in replay alike.
        """
        failures: list[Failure] = []
        try:
            event = self.follow(tenant, event)
        except Exception as error:  # noqa: BLE001  An event is never lost because of one part of it.
            failures.append((TRAIL, message_of(error)))
        facts = compiled.facts(event)
        seen = compiled.observe(facts)
        failures += failures_of(facts, seen)
        # Before it is recorded: it does not count itself.
        later = self._ask_later(tenant, compiled.plan, event, seen, failures)
        answer = ask(self, compiled.plan, tenant, event_id, event.occurred_at_ms, seen, failures)
        return WatchedEvent(event, facts, answer, failures, later)

    def _ask_later(
        self, tenant: str, plan: Plan, event: AmlEvent, seen: Observation, failures: list[Failure]
    ) -> tuple[VelocityAnswer, ...]:
        """Ask about a late event as if it had come after what followed it."""
        try:
            return tuple(
                _reaching(plan, at_ms - event.occurred_at_ms, self._velocity.look(tenant, at_ms, seen))
                for at_ms in event.trail.newer_ms
            )
        except Exception as error:  # noqa: BLE001  As of its own time it is judged all the same.
            failures.append((MEMORY, message_of(error)))
            return ()

    def follow(self, tenant: str, event: AmlEvent) -> AmlEvent:
        """Add the event's transfer to the graph, and return the event with what the graph says of it."""
        book = self._books[tenant]
        at_ms = event.occurred_at_ms
        # What is far behind does not say how long a tenant was watched: one wrong clock would, for good.
        since_ms = max(at_ms, event.received_at_ms - OWN_MS)
        book.first_ms = since_ms if book.first_ms is None else min(book.first_ms, since_ms)
        book.high_ms = max(book.high_ms, at_ms)
        book.sweep()
        return msgspec.structs.replace(event, trail=_follow(book, event))


def _reaching(plan: Plan, late_ms: int, answer: VelocityAnswer) -> VelocityAnswer:
    """Return what an answer says by windows that reach back to an event so late; the rest is unknown.

    What was newest says nothing of it either: that came later.
    """
    values = (
        None if one.window_ms <= late_ms or AGGREGATES[one.kind].summary in _OF_THE_NEWEST else value
        for one, value in zip(plan.aggregates, answer.values, strict=True)
    )
    return answer._replace(values=tuple(values))


def _newer(book: Parties, at_ms: int, party: str, counterparty: str | None) -> tuple[int, ...]:
    """Return the moments of the newest transfers of both sides, where they lie after an event."""
    own = book.own.get(party)
    other = book.graph.nodes.get(counterparty) if counterparty is not None else None
    found = {0 if own is None else own.last_ms, 0 if other is None else other.last_ms}
    return tuple(sorted(moment_ms for moment_ms in found if moment_ms > at_ms))


def _follow(book: Parties, event: AmlEvent) -> TransferHistory:
    transfer = event.transfer
    party = _learn(book, event)
    counterparty = _other_side(book, event)
    assert book.first_ms is not None
    watched = (event.occurred_at_ms - book.first_ms) / DAY_MS
    if not transfer.moves or party is None or transfer.amount is None:
        return TransferHistory(party=party, counterparty=counterparty, watched_days=watched)
    newer_ms = _newer(book, event.occurred_at_ms, party, counterparty)
    idle, awake, benford = _activity(book, party, event, watched)
    above = _peers_above(book, book.own[party], event) if transfer.incoming else None
    if counterparty is None or counterparty == party or not (transfer.incoming or transfer.outgoing):
        return TransferHistory(
            party=party,
            counterparty=counterparty,
            sender=party if transfer.outgoing else None,
            receiver=party if transfer.incoming else None,
            sender_own=transfer.outgoing,
            receiver_own=transfer.incoming,
            sender_segment=book.own[party].segment if transfer.outgoing else None,
            receiver_segment=book.own[party].segment if transfer.incoming else None,
            idle_days=idle,
            awake_hours=awake,
            watched_days=watched,
            benford=benford,
            peers_above=above,
            newer_ms=newer_ms,
        )
    sender, receiver = (party, counterparty) if transfer.outgoing else (counterparty, party)
    graph = book.graph
    told = "out" if transfer.outgoing else "in"
    edge = graph.add(sender, receiver, event.occurred_at_ms, transfer.amount, told, PAIR_MS)
    circle = graph.cycle(edge)
    old_circle = circle or graph.cycle(edge, known=True)
    grid, shared = graph.grid(edge)
    split_ms = graph.nodes[receiver].split_ms
    payer, payee = book.own.get(sender), book.own.get(receiver)
    return TransferHistory(
        party=party,
        counterparty=counterparty,
        sender=sender,
        receiver=receiver,
        sender_own=payer is not None,
        receiver_own=payee is not None,
        sender_segment=payer.segment if payer is not None else None,
        receiver_segment=payee.segment if payee is not None else None,
        pair_is_new=edge.is_new,
        idle_days=idle,
        awake_hours=awake,
        watched_days=watched,
        cycle=len(circle),
        old_cycle=len(old_circle),
        chain=edge.depth,
        gathered=graph.gathered(edge),
        spread=graph.spread(edge),
        grid=grid,
        shared=shared,
        mirror=graph.mirror(edge) if transfer.outgoing else None,
        # Somebody who buys several times a day in one shop does not send it parts of a sum.
        repeats=0 if transfer.buys else graph.repeats(edge),
        split_days=(event.occurred_at_ms - split_ms) / DAY_MS
        if split_ms is not None and not transfer.buys
        else None,
        benford=benford,
        peers_above=above,
        newer_ms=newer_ms,
        path=old_circle or (edge.path if edge.depth > 1 else ()),
    )


def _learn(book: Parties, event: AmlEvent) -> str | None:
    """Name the party of an event, and remember that its account is one of its names."""
    who, account = event.customer_id or event.email, event.transfer.account
    if who is None:
        return book.alias.get(f"a:{account}", f"a:{account}") if account is not None else None
    party = f"p:{who}"
    known = book.own.get(party)
    if known is None or event.transfer.segment not in (None, known.segment):
        book.customer(party).segment = event.transfer.segment
    # Who acts on an account holds it, rather than a stranger whom payers named with it.
    if account is not None and book.alias.get(key := f"a:{account}") not in book.own:
        book.alias[key] = party
        book.graph.merge(key, party)
        # A counterparty may have been named by the account where an id was expected.
        if f"p:{account}" not in book.own:
            book.graph.merge(f"p:{account}", party)
    return party


def _other_side(book: Parties, event: AmlEvent) -> str | None:
    """Name the other side of an event, and remember that its account is one of its names."""
    account, who = event.transfer.counterparty_account, event.transfer.counterparty_id
    if account is not None and (known := book.alias.get(f"a:{account}")) is not None:
        return known
    if who is None:
        return f"a:{account}" if account is not None else None
    key = f"p:{who}"
    if key not in book.own:
        # An account may be named where an id is expected.
        key = book.alias.get(f"a:{who}", key)
    if account is not None and account != who:
        book.alias[f"a:{account}"] = key
        book.graph.merge(f"a:{account}", key)
    return key


def _activity(
    book: Parties, party: str, event: AmlEvent, watched: float
) -> tuple[float | None, float | None, float | None]:
    """Return (idle days, hours since coming back, chi-square of first digits), and note the event."""
    own = book.customer(party)
    at_ms = event.occurred_at_ms
    idle: float | None = None
    # Beyond that a customer is forgotten, sooner or later; here at once, so that it does not matter when.
    if own.last_ms and at_ms - own.last_ms <= OWN_MS:
        idle = max(0.0, (at_ms - own.last_ms) / DAY_MS)
    elif event.transfer.age_days is not None:
        # Never seen so far: silent since it was opened, as far as anybody was watching.
        idle = min(event.transfer.age_days, watched)
    if idle is not None and idle >= SILENCE_DAYS:
        own.woke_ms = at_ms
    own.last_ms = max(own.last_ms, at_ms)
    awake: float | None = None
    if own.woke_ms is not None and at_ms - own.woke_ms <= AWAKE_MS:
        awake = max(0.0, (at_ms - own.woke_ms) / HOUR_MS)
    amount = event.transfer.amount or 0
    own.digits[_first_digit(amount)] += 1
    return idle, awake, _chi_square(own.digits)


def _peers_above(book: Parties, own: OwnCustomer, event: AmlEvent) -> float | None:
    """Add what comes in to a customer's turnover, and return the share of its peers that have as much."""
    transfer, at_ms = event.transfer, event.occurred_at_ms
    if transfer.lends or transfer.amount is None:
        return None
    own.turnover = grown(own.turnover, at_ms - own.turned_ms, transfer.amount)
    own.turned_ms = max(own.turned_ms, at_ms)
    group = book.peers.group(own.segment, transfer.currency, transfer.income)
    if group is None:
        return None
    above = group.share_above(own.turnover)
    if own.sampled_ms is None or at_ms - own.sampled_ms >= DAY_MS:
        group.members += own.sampled_ms is None
        own.sampled_ms = at_ms
        group.add(own.turnover)
    return above


def _first_digit(amount: float) -> int:
    """Return the first digit that is no 0 of a positive amount, looked for down to a millionth."""
    whole = int(amount) or int(amount * 1_000_000)
    return int(str(whole)[0])


def _chi_square(digits: list[int]) -> float | None:
    total = sum(digits) - digits[0]
    if total < BENFORD_MIN:
        return None
    return sum(
        (count - total * share) ** 2 / (total * share)
        for count, share in zip(digits[1:], _BENFORD, strict=True)
    )
