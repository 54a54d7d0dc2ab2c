"""Forms about several things: each is done by itself, and what others were faster with is counted."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from vettance.audit.act import Act, acting, current_act, leave_out
from vettance.console.page import Visit
from vettance.errors import Conflict, NotFound, Refusal, Unprocessable


async def do_each(visit: Visit, ids: Sequence[str], action: str, do: Callable[[str], Awaitable[Any]]) -> int:
    """Do one thing for each of several ids; returns how many were left out.

    Each that is done has an entry of its own in the audit log, as an `action`. Raises what the last one was
    refused with when none was done.
    """
    outer = current_act()
    sent = outer.after if outer is not None and isinstance(outer.after, dict) else {}
    said = {name: value for name, value in sent.items() if name != "decision"}
    left_out, last = 0, None
    for one in ids:
        try:
            with acting(Act(visit.signed.actor, action, tenant=visit.tenant.id, subject=one, after=said)):
                await do(one)
        except (Conflict, NotFound, Unprocessable) as refused:
            if not _is_of_one(refused):
                raise
            left_out, last = left_out + 1, refused
    if last is not None and left_out == len(ids):
        raise last
    leave_out()
    return left_out


def _is_of_one(refused: Refusal) -> bool:
    """Tell whether a refusal is about one of the things alone; a form that is wrong is so for all of them."""
    return not isinstance(refused, Unprocessable) or "id" in refused.details
