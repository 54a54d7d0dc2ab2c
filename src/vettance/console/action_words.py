"""Actions of the audit log in plain words: what somebody did by a page, a call or a command."""

from collections.abc import Mapping
from typing import Final

from vettance.console.words import Words

_LIST_ADDED: Final = Words("Added a list entry")
_LIST_REMOVED: Final = Words("Removed a list entry")
_LABELLED: Final = Words("Labelled a decision")
_SETTLED: Final = Words("Settled a review")
_SENT_AGAIN: Final = Words("Sent webhook deliveries again")
_SENT_ONE_AGAIN: Final = Words("Sent a webhook delivery again")
_SUBSCRIBED: Final = Words("Subscribed a webhook")
_UNSUBSCRIBED: Final = Words("Unsubscribed a webhook")
_TESTED: Final = Words("Sent a test to a webhook")
_SCREENED: Final = Words("Screened a name")
_DISMISSED: Final = Words("Said that a match is somebody else")
_FEATURES: Final = Words("Saved own features")
_FEATURES_BACK: Final = Words("Took back earlier features")
_SUGGESTION: Final = Words("Asked for suggestions")
_SUGGESTION_ENDED: Final = Words("Cancelled a suggestion")
_BULK: Final = Words("Asked to settle reviews in bulk")
_REVOKED: Final = Words("Revoked an API key")
_SIGNED_IN: Final = Words("Signed in")
_ROLES: Final = Words("Changed the roles of a user")
_INVITED: Final = Words("Invited a user")
_LINK: Final = Words("Made a link to sign in")
_STEERED: Final = Words("Changed how the model acts")
_PROMOTED: Final = Words("Put a model in force")
_MODEL_BACK: Final = Words("Took back the model before")
_CHANGE: Final = Words("Decided a proposed change of the model")
_TRAINED: Final = Words("Asked for a training")
_SETTINGS: Final = Words("Changed the settings")
_EVENT: Final = Words("Sent an event")

#: Words by path: of endpoints below `/api/v1/`, and of pages below `/console/`.
_CALLS: Final[Mapping[str, str]] = {
    "POST /api/v1/decisions/evaluate": _EVENT,
    "POST /api/v1/events": _EVENT,
    "POST /api/v1/events/ingest": _EVENT,
    "POST /api/v1/events/async": _EVENT,
    "POST /api/v1/aml/events": _EVENT,
    "POST /api/v1/websdk/tokens": Words("Made a token for a page"),
    "POST /api/v1/websdk/signals": Words("Sent signals of a browser"),
    "POST /api/v1/collect": Words("Sent signals of a browser"),
    "POST /api/v1/lists": _LIST_ADDED,
    "DELETE /api/v1/lists/{id}": _LIST_REMOVED,
    "POST /api/v1/lists/customer/{email}": _LIST_ADDED,
    "DELETE /api/v1/lists/customer/{email}": _LIST_REMOVED,
    "POST /api/v1/lists/device": _LIST_ADDED,
    "DELETE /api/v1/lists/device/{fingerprint}": _LIST_REMOVED,
    "POST /api/v1/lists/ip": _LIST_ADDED,
    "DELETE /api/v1/lists/ip/{ip}": _LIST_REMOVED,
    "POST /api/v1/webhooks/subscriptions": _SUBSCRIBED,
    "DELETE /api/v1/webhooks/subscriptions/{id}": _UNSUBSCRIBED,
    "POST /api/v1/webhooks/subscriptions/{id}/test": _TESTED,
    "POST /api/v1/webhooks/subscriptions/{id}/rotate-secret": Words("Changed the secret of a webhook"),
    "POST /api/v1/webhooks/subscriptions/{id}/replay": _SENT_AGAIN,
    "POST /api/v1/webhooks/deliveries/{id}/replay": _SENT_ONE_AGAIN,
    "POST /api/v1/feedback/decision/{id}": _LABELLED,
    "POST /api/v1/feedback/event/{id}": Words("Labelled an event"),
    "POST /api/v1/reviews/{decisionId}/settle": _SETTLED,
    "POST /api/v1/rules/suggestions": _SUGGESTION,
    "DELETE /api/v1/rules/suggestions/{suggestionId}": _SUGGESTION_ENDED,
    "PUT /api/v1/models/features": _FEATURES,
    "POST /api/v1/models/features/rollback": _FEATURES_BACK,
    "POST /api/v1/aml/cases/{id}/resolve": Words("Resolved a case, or proposed to"),
    "POST /api/v1/aml/cases/{id}/reject": Words("Turned down what was proposed for a case"),
    "POST /api/v1/aml/cases/{id}/notes": Words("Wrote a note on a case"),
    "POST /api/v1/aml/cases/{id}/assign": Words("Assigned a case"),
    "POST /api/v1/aml/screen": _SCREENED,
    "POST /api/v1/aml/screenings/{id}/dismiss": _DISMISSED,
    "PUT /api/v1/aml/settings": Words("Changed how AML officers work"),
    "POST /console/lists": _LIST_ADDED,
    "POST /console/lists/{id}/remove": _LIST_REMOVED,
    "POST /console/decisions/label": Words("Labelled decisions"),
    "POST /console/decisions/{id}/label": _LABELLED,
    "POST /console/decisions/{id}/claim": Words("Took a review"),
    "POST /console/decisions/{id}/settle": _SETTLED,
    "POST /console/decisions/{id}/undo": Words("Took back the settling of a review"),
    "POST /console/decisions/{id}/check": Words("Gave a second look"),
    "POST /console/queue/next": Words("Took the next review"),
    "POST /console/queue/release": Words("Gave a review back"),
    "POST /console/queue/settle": Words("Settled several reviews"),
    "POST /console/queue/assign": Words("Assigned reviews"),
    "POST /console/queue/bulk": _BULK,
    "POST /console/queue/bulk/{id}/approve": Words("Signed for reviews in bulk"),
    "POST /console/queue/bulk/{id}/refuse": Words("Refused to settle reviews in bulk"),
    "POST /console/queue/bulk/{id}/stop": Words("Stopped settling reviews in bulk"),
    "POST /console/models/setting": _STEERED,
    "POST /console/models/train": _TRAINED,
    "POST /console/models/rollback": _MODEL_BACK,
    "POST /console/models/changes/{change}/{step}": _CHANGE,
    "POST /console/models/{version}/promote": _PROMOTED,
    "POST /console/models/features/check": Words("Checked own features"),
    "POST /console/models/features/save": _FEATURES,
    "POST /console/models/features/rollback": _FEATURES_BACK,
    "POST /console/rules/suggestions": _SUGGESTION,
    "POST /console/rules/suggestions/{suggestion}/cancel": _SUGGESTION_ENDED,
    "POST /console/rules/suggestions/{suggestion}/draft": Words("Made a draft of a suggestion"),
    "POST /console/enter/{token}": Words("Set a password by a link"),
    "POST /console/sign-in": _SIGNED_IN,
    "POST /console/sign-out": Words("Signed out"),
    "POST /console/second-factor": _SIGNED_IN,
    "POST /console/second-factor/set-up": Words("Switched a second factor on"),
    "POST /console/second-factor/remove": Words("Switched a second factor off"),
    "POST /console/profile": Words("Changed a profile"),
    "POST /console/profile/password": Words("Changed a password"),
    "POST /console/profile/sessions/{id}/end": Words("Ended a session"),
    "POST /console/settings": _SETTINGS,
    "POST /console/settings/keys": Words("Made an API key"),
    "POST /console/settings/keys/{id}/revoke": _REVOKED,
    "POST /console/settings/users": _INVITED,
    "POST /console/settings/users/{id}/roles": _ROLES,
    "POST /console/settings/users/{id}/link": _LINK,
    "POST /console/audit/verify": Words("Verified the audit log"),
    "POST /console/audit/export": Words("Exported the audit log"),
    "POST /console/aml/cases/{id}": Words("Worked on a case"),
    "POST /console/aml/cases/{id}/export": Words("Exported a case"),
    "POST /console/aml/screen": _SCREENED,
    "POST /console/aml/screenings/{id}/dismiss": _DISMISSED,
    "POST /console/aml/screenings/{id}/export": Words("Exported a screening"),
    "POST /console/webhooks": _SUBSCRIBED,
    "POST /console/webhooks/{id}/remove": _UNSUBSCRIBED,
    "POST /console/webhooks/{id}/test": _TESTED,
    "POST /console/webhooks/{id}/replay": _SENT_AGAIN,
    "POST /console/webhooks/{id}/deliveries/{delivery}/replay": _SENT_ONE_AGAIN,
    "POST /console/reports/{name}": Words("Exported a report"),
    "POST /console/reveal": Words("Revealed personal data"),
}
#: What is done to rules of both products, below the path of each: words for fraud rules and for AML rules.
_OF_RULES: Final[Mapping[str, tuple[str, str]]] = {
    "POST rulesets": (Words("Saved rules as a version"), Words("Saved AML rules as a version")),
    "POST rulesets/check": (Words("Checked rules"), Words("Checked AML rules")),
    "POST rulesets/rollback": (Words("Took back earlier rules"), Words("Took back earlier AML rules")),
    "POST rulesets/{version}/propose": (Words("Proposed rules"), Words("Proposed AML rules")),
    "POST rulesets/{version}/approve": (Words("Approved rules"), Words("Approved AML rules")),
    "POST rulesets/{version}/reject": (Words("Rejected rules"), Words("Rejected AML rules")),
    "POST rulesets/{version}/activate": (Words("Put rules in force"), Words("Put AML rules in force")),
    "POST rules/snoozes": (Words("Snoozed a rule"), Words("Snoozed an AML rule")),
    "DELETE rules/snoozes/{id}": (Words("Ended a snooze"), Words("Ended a snooze of an AML rule")),
    "POST backtests": (Words("Began a backtest"), Words("Began a backtest of AML rules")),
    "DELETE backtests/{backtestId}": (
        Words("Cancelled a backtest"),
        Words("Cancelled a backtest of AML rules"),
    ),
}
#: Pages that do what an endpoint does, below `/console/rules/`, and that endpoint.
_PAGES_OF_RULES: Final[Mapping[str, str]] = {
    "check": "POST rulesets/check",
    "save": "POST rulesets",
    "rollback": "POST rulesets/rollback",
    "snoozes": "POST rules/snoozes",
    "snoozes/{id}/end": "DELETE rules/snoozes/{id}",
    "backtests": "POST backtests",
    "backtests/{backtest}/cancel": "DELETE backtests/{backtestId}",
}
#: Pages below `/console/rules/` that do one of several things.
_MORE_OF_RULES: Final[Mapping[str, tuple[str, str]]] = {
    "versions/{version}/{step}": (
        Words("Decided a version of the rules"),
        Words("Decided a version of the AML rules"),
    ),
    "changes": (Words("Changed a rule"), Words("Changed an AML rule")),
}
#: Commands, and what the service itself does.
_OTHERS: Final[Mapping[str, str]] = {
    "sign in": _SIGNED_IN,
    "sign in failed": Words("Failed to sign in"),
    "password given": Words("Gave the password; the second factor is to come"),
    "sign out": Words("Signed out"),
    "second factor on": Words("Switched a second factor on"),
    "set roles by the provider": _ROLES,
    "link to the provider": Words("Linked a user to the provider"),
    "list entry added by rule": Words("A rule added a list entry"),
    "list entry extended by rule": Words("A rule made a list entry last longer"),
    "audit erase": Words("Erased names from the audit log"),
    "reviews settled in bulk": Words("Settled reviews in bulk"),
    "tenant create": Words("Made the organisation"),
    "tenant set": _SETTINGS,
    "key create": Words("Made an API key"),
    "key revoke": _REVOKED,
    "key rotate": Words("Replaced an API key"),
    "user create": _INVITED,
    "user link": _LINK,
    "user set": Words("Changed a user"),
    "rules push": Words("Saved rules as a version"),
    "rules propose": Words("Proposed rules"),
    "rules approve": Words("Approved rules"),
    "rules reject": Words("Rejected rules"),
    "rules activate": Words("Put rules in force"),
    "rules rollback": Words("Took back earlier rules"),
    "rules snooze": Words("Snoozed a rule"),
    "rules unsnooze": Words("Ended a snooze"),
    "aml push": Words("Saved AML rules as a version"),
    "aml propose": Words("Proposed AML rules"),
    "aml approve": Words("Approved AML rules"),
    "aml reject": Words("Rejected AML rules"),
    "aml activate": Words("Put AML rules in force"),
    "aml rollback": Words("Took back earlier AML rules"),
    "aml snooze": Words("Snoozed an AML rule"),
    "aml unsnooze": Words("Ended a snooze of an AML rule"),
    "aml set": Words("Changed how AML officers work"),
    "model train": _TRAINED,
    "model promote": _PROMOTED,
    "model rollback": _MODEL_BACK,
    "model off": Words("Switched the model off"),
    "model mode": _STEERED,
    "model set": _STEERED,
    "model approve": _CHANGE,
    "model reject": _CHANGE,
    "model features push": _FEATURES,
    "model features rollback": _FEATURES_BACK,
    "customer erase": Words("Erased a customer"),
    "watchlist import": Words("Imported a watchlist"),
    "watchlist remove": Words("Removed a watchlist"),
    "websdk rotate": Words("Changed the key of the tokens of browsers"),
    "retention run": Words("Removed data whose time is over"),
    "export": Words("Exported records"),
    "import": Words("Imported events"),
}


def action_in_words(action: str) -> str:
    """Return what was done, in words; a command or call without words is said as the log has it."""
    return WORDS.get(action) or action[:1].upper() + action[1:]


def _written() -> dict[str, str]:
    """Return the words of every action that has some."""
    found = {**_CALLS, **_OTHERS}
    for product, root in enumerate(("", "aml/")):
        for name, both in _OF_RULES.items():
            method, _, path = name.partition(" ")
            found[f"{method} /api/v1/{root}{path}"] = both[product]
        for page, endpoint in _PAGES_OF_RULES.items():
            found[f"POST /console/rules/{root}{page}"] = _OF_RULES[endpoint][product]
        for page, both in _MORE_OF_RULES.items():
            found[f"POST /console/rules/{root}{page}"] = both[product]
    return found


WORDS: Final[Mapping[str, str]] = _written()
