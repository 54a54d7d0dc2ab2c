"""Replay: answers a retry with the stored answer; simultaneous requests with one key have one effect."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final

from vettance import clock
from vettance.db.engine import Clash, Statement, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.redis_link.down import StateDown
from vettance.replays import sql
from vettance.telemetry.logs import logger
from vettance.tenants.vault import Vault
from vettance.velocity.port import WorkClaims
from vettance.web.asgi import Header
from vettance.web.response import Response, answer_of
from vettance.web.routing import Call, RouteReply

KEPT_MS: Final = 24 * 3600 * 1000
PURGE_S: Final = 60.0
PURGE_ROWS: Final = 1_000
#: How soon a request polls for the answer of another process that works on its key; then twice as long each
#: time.
POLL_S: Final = 0.01
POLL_S_MAX: Final = 0.25
#: How long it polls: twice the life of a claim, so that one more of those that wait may work alone.
PATIENCE_S: Final = 10.0
_PLACE: Final = "answer"
_PURGE: Final = "purge"

_log = logger()


class AnswerKeeper:
    """Keeps the answer of one request in the commit of its effect."""

    def __init__(self, place: sql.AnswerKey, now_ms: Callable[[], int], vault: Vault) -> None:
        self._place = place
        self._vault = vault
        self._now_ms = now_ms
        #: Whether a door has taken the statements; then the door is responsible for storing the answer.
        self.taken = False

    def keep(self, reply: RouteReply, hints: tuple[Header, ...]) -> tuple[Statement, ...]:
        """Return the statements that keep a reply with the hints on its request."""
        self.taken = True
        return self.statements(answer_of(reply, hints))

    def statements(self, answer: Response) -> tuple[Statement, ...]:
        """Return the statements that keep an answer for 24 hours from now."""
        now_ms = self._now_ms()
        # Some answers hold what is shown once, such as signing secrets and tokens.
        sealed = self._vault.seal(answer.content, _PLACE, *self._place)
        return sql.keep_answer(self._place, answer.status, sealed, answer.headers, now_ms, now_ms + KEPT_MS)


class StoredReplays:
    """Implements the edge's `Replays` on the store.

    A door that has an effect puts `call.keep(reply)` into the commit of the effect: then there is never an
    effect without its answer, nor an answer without its effect. Answers without an effect (refusals) are
    kept afterwards. Requests of one process wait for each other, and those of other processes for the
    holder of the claim. That saves work whose result would be refused: where a claim has lapsed, or there are
    none, they meet in the store, where the unique key lets one commit through.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        now_ms: Callable[[], int] = clock.now_ms,
        claims: WorkClaims | None = None,
    ) -> None:
        self._store = store
        self._vault = vault
        self._claims = claims
        self._now_ms = now_ms
        self._isolation = Isolation("replays")
        self._running: dict[sql.AnswerKey, asyncio.Future[Response | None]] = {}

    async def answer(self, call: Call, raw_path: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
        """Return the kept answer, or await `work` once and keep what it answers; see `Replays`."""
        assert call.idempotency_key is not None, "the edge has read the key"
        place = sql.AnswerKey(call.tenant.id, raw_path.decode("latin-1"), call.idempotency_key)
        while (running := self._running.get(place)) is not None:
            shared = await asyncio.shield(running)
            if shared is not None:
                return shared
        mine = self._running[place] = asyncio.get_running_loop().create_future()
        answer: Response | None = None
        try:
            if self._claims is None:
                answer = await self._find(place) or await self._work(call, place, work)
            else:
                answer = await self._answer_claimed(self._claims, call, place, work)
        finally:
            del self._running[place]
            mine.set_result(answer if answer is not None and answer.status < 500 else None)
        return answer

    async def _answer_claimed(
        self, claims: WorkClaims, call: Call, place: sql.AnswerKey, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Answer a request that no other works on, as far as this process knows."""
        name = f"{place.path}\0{place.key}"
        holder = await self._claim(claims, place, name)
        answer: Response | None = None
        try:
            answer = await self._find(place) or await self._work(call, place, work)
        finally:
            # The claim of a stored answer lapses by itself: a request that comes meanwhile finds it.
            if holder is not None and (answer is None or answer.status >= 500):
                with contextlib.suppress(StateDown):
                    await claims.give_up(place.tenant, name, holder)
        return answer

    async def _claim(self, claims: WorkClaims, place: sql.AnswerKey, name: str) -> bytes | None:
        """Wait for the claim or the answer; None when there is no claim to be had."""
        until_s, pause_s = time.monotonic() + PATIENCE_S, POLL_S
        while time.monotonic() < until_s:
            try:
                holder = await claims.take(place.tenant, name)
            except StateDown:
                return None
            if holder is not None or await self._find(place) is not None:
                return holder
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, POLL_S_MAX)
        return None

    async def _find(self, place: sql.AnswerKey) -> Response | None:
        rows = await self._store.read(sql.select_answer(place, self._now_ms()))
        if not rows:
            return None
        kept = sql.kept_of(rows[0])
        return Response(kept.status, self._vault.open(kept.content, _PLACE, *place), kept.headers)

    async def _work(
        self, call: Call, place: sql.AnswerKey, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        call.keeper = keeper = AnswerKeeper(place, self._now_ms, self._vault)
        answer = await work()
        if keeper.taken:
            # The commit with the effect may have been refused because another process was first.
            return (
                answer if answer.status < 400 else await self._find(place) or await self._keep(keeper, answer)
            )
        return await self._keep(keeper, answer)

    async def _keep(self, keeper: AnswerKeeper, answer: Response) -> Response:
        """Store an answer without an effect of its own; it can be worked out again, unlike an effect."""
        if answer.status < 500:
            try:
                await self._store.write(*keeper.statements(answer))
            except StoreDown:
                pass  # A retry is worked out again.
            except Clash as error:
                _log.warning("answer_not_kept", reason=str(error))
        return answer

    async def purge(self) -> None:
        """Remove the answers that have expired, in small commits."""
        while (await self._store.write(sql.forget_expired(self._now_ms(), PURGE_ROWS)))[0] == PURGE_ROWS:
            pass

    async def run(self, pause_s: float = PURGE_S) -> None:
        """Purge once a minute, until cancelled."""
        while True:
            await asyncio.sleep(pause_s)
            with contextlib.suppress(StoreDown), self._isolation.of(_PURGE):
                await self.purge()
