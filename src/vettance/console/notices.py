"""Notices: the sentences that a page shows after a change, by the word in its address.

Only words of this table are shown: an address that somebody sends cannot put words into the console's mouth.
"""

from typing import Final

NOTICES: Final[dict[str, str]] = {
    "added": "Added to the list.",
    "already-listed": "It is on that list already.",
    "removed": "Removed from the list.",
    "queue-empty": "Nothing waits for you: every open review is settled or somebody's.",
    "undone": "Taken back. The review is yours again.",
    "given-back": "Given back to the queue.",
    "taken": "The review is yours for 15 minutes.",
    "assigned": "Assigned. It is theirs until it is due.",
    "settled": "Settled.",
    "bulk-asked": "Asked. It begins when a lead signs second.",
    "bulk-approved": "Signed. It begins in ten seconds; until then, stopping it leaves no trace.",
    "bulk-refused": "Refused. Its reviews wait as before.",
    "bulk-stopped": "Stopped. What is not settled yet waits as before.",
    "checked": "Thank you. Your second look is counted.",
    "dismissed": "Not the same: remembered until the list says something else of them.",
    "replayed": "Sent again.",
    "subscribed": "Subscribed.",
    "unsubscribed": "Unsubscribed.",
    "labelled": "Label saved.",
    "saved": "Saved.",
    "suggestion-ordered": "Ordered. What is found stands here when it is done.",
    "suggestion-cancelled": "Cancelled.",
    "rule-snoozed": "Snoozed. Every server follows within five seconds.",
    "rule-wakes": "The rule acts for it again within five seconds.",
    "backtest-ordered": "Ordered. What it finds stands here when it is done.",
    "backtest-cancelled": "Cancelled.",
    "rules-drafted": "Saved as a draft.",
    "rules-proposed": "Proposed: somebody else can approve it now.",
    "rules-approved": "Approved. It comes into force when it is put there.",
    "rules-rejected": "Rejected.",
    "rules-active": "In force everywhere within five seconds.",
    "model-set": "Set. Every server follows within five seconds.",
    "model-proposed": "Proposed: it takes effect once somebody else approves it.",
    "model-training": "A training is asked for; the new model stands here when it is done.",
    "signed-out": "You are signed out.",
    "member-added": "They have an account already, and see this organisation from now on.",
    "key-revoked": "The key works no more within five seconds.",
    "verified": "The log is as it was written: no entry was changed, inserted or removed.",
    "password-changed": "Your password is changed, and your other sessions have ended.",
    "factor-removed": "The second factor is off.",
    "session-removed": "That session has ended.",
    "session-ended": "Your session has ended. Sign in again.",
}


def notice_of(word: str) -> str | None:
    """Return the sentence of a word; None for any other."""
    return NOTICES.get(word)
