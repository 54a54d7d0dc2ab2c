"""Notices: the sentences that a page shows after a change, by the word in its address.

Only words of this table are shown: an address that somebody sends cannot put words into the console's mouth.
"""

from typing import Final

from vettance.console.catalogue import FOLDER, catalogue_of, language_of
from vettance.console.shown_values import ValueFormatter
from vettance.console.words import Words

NOTICES: Final[dict[str, str]] = {
    "added": Words("Added to the list."),
    "already-listed": Words("It is on that list already."),
    "removed": Words("Removed from the list."),
    "queue-empty": Words("Nothing waits for you: every open review is settled or somebody's."),
    "undone": Words("Taken back. The review is yours again."),
    "given-back": Words("Given back to the queue."),
    "taken": Words("The review is yours for 15 minutes."),
    "assigned": Words("Assigned. It is theirs until it is due."),
    "settled": Words("Settled."),
    "bulk-asked": Words("Asked. It begins when a lead signs second."),
    "bulk-approved": Words("Signed. It begins in ten seconds; until then, stopping it leaves no trace."),
    "bulk-refused": Words("Refused. Its reviews wait as before."),
    "bulk-stopped": Words("Stopped. What is not settled yet waits as before."),
    "checked": Words("Thank you. Your second look is counted."),
    "dismissed": Words("Not the same: remembered until the list says something else of them."),
    "dismissed-last": Words(
        "Not the same: remembered until the list says something else of them. "
        "Nothing else was open, so the case is closed as a false alarm."
    ),
    "replayed": Words("Queued again."),
    "replayed-none": Words("Nothing of that time was given up, so nothing is sent again."),
    "subscribed": Words("Subscribed."),
    "unsubscribed": Words("Unsubscribed."),
    "labelled": Words("Label saved."),
    "saved": Words("Saved."),
    "suggestion-cancelled": Words("Cancelled."),
    "rule-snoozed": Words("Snoozed. Every server follows within five seconds."),
    "rule-wakes": Words("The rule acts for it again within five seconds."),
    "backtest-cancelled": Words("Cancelled."),
    "rules-drafted": Words("Saved as a draft."),
    "rules-proposed": Words("Proposed: somebody else can approve it now."),
    "rules-approved": Words("Approved. It comes into force when it is put there."),
    "rules-rejected": Words("Rejected."),
    "rules-active": Words("In force everywhere within five seconds."),
    "model-set": Words("Set. Every server follows within five seconds."),
    "model-proposed": Words("Proposed: it takes effect once somebody else approves it."),
    "features-saved": Words("Saved. Every server records these features within seconds."),
    "signed-out": Words("You are signed out."),
    "member-added": Words("They have an account already, and see this organisation from now on."),
    "key-revoked": Words("The key works no more within five seconds."),
    "verified": Words("The log is as it was written: no entry was changed, inserted or removed."),
    "password-changed": Words("Your password is changed, and your other sessions have ended."),
    "factor-removed": Words("The second factor is off."),
    "session-removed": Words("That session has ended."),
    "form-kept": Words(
        "Your session had ended, so what you sent was not done. Sign in, and its page shows it once more."
    ),
    "form-not-done": Words(
        "Your session has ended, so what you sent was not done. Sign in, and do it again."
    ),
    "session-ended": Words("Your session has ended. Sign in again."),
}

#: Sentences with a number: what it counts, and the words around it.
COUNTED: Final[dict[str, tuple[str, str]]] = {
    "settled-some": (
        "review",
        Words("Settled, but for {}: somebody else holds what is left, or has settled it meanwhile."),
    ),
    "assigned-some": (
        "review",
        Words("Assigned, but for {}: what is left was settled or has expired meanwhile."),
    ),
    "labelled-some": (
        "decision",
        Words("Labels saved, but for {}: what is left was removed, or has as many labels as there can be."),
    ),
    "replayed-some": ("delivery", Words("Queued again: {}.")),
    "replay-cut-some": (
        "delivery",
        Words("Queued again: {}. There are more: send them again once these are sent."),
    ),
}

#: Those that tell of what was not done.
WARNINGS: Final = frozenset(
    {
        *("form-kept", "form-not-done", "session-ended", "replayed-none", "replay-cut-some"),
        *("settled-some", "assigned-some", "labelled-some"),
    }
)
_DIGITS_MAX: Final = 6


def notice_of(word: str, count: str, show: ValueFormatter) -> str | None:
    """Return the sentence of a word, with its number where it has one; None for any other."""
    if word not in COUNTED:
        return NOTICES.get(word)
    if not (count.isascii() and count.isdigit() and len(count) <= _DIGITS_MAX):
        return None
    noun, words = COUNTED[word]
    said = catalogue_of(language_of(show.locale, FOLDER), FOLDER).get(words, words)
    return said.replace("{}", show.count(int(count), noun))
