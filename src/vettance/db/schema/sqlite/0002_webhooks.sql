-- Subscriptions, what is to be delivered to them, and every attempt at it.
-- Moments are Unix milliseconds. Secrets are sealed: AES-256-GCM, bound to their row and column.

CREATE TABLE subscription (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- Four hex digits, different for each subscription of a tenant: the end of the ids of its deliveries.
    slot TEXT NOT NULL,
    url TEXT NOT NULL,
    event_types TEXT NOT NULL,
    secret BLOB NOT NULL,
    next_secret BLOB,
    old_secret BLOB,
    old_until_ms INTEGER,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    last_triggered_at_ms INTEGER,
    last_success_at_ms INTEGER,
    last_failure_at_ms INTEGER,
    failures_in_a_row INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    UNIQUE (tenant, slot)
) WITHOUT ROWID;

-- Who hears of what. The outbox joins it inside the commit of what it tells.
CREATE TABLE interest (
    tenant TEXT NOT NULL,
    type TEXT NOT NULL,
    subscription TEXT NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    slot TEXT NOT NULL,
    PRIMARY KEY (tenant, type, subscription)
) WITHOUT ROWID;
CREATE INDEX interest_subscription ON interest (subscription);

-- The outbox: one row for each subscription that a message goes to. `body` is what every attempt sends, byte
-- by byte. A row with a lease is being sent by the worker that holds this lease, until `leased_until_ms`.
-- `attempts` counts the finished ones since it was queued or replayed, `attempts_ever` all of them.
CREATE TABLE delivery (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    subscription TEXT NOT NULL,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    due_at_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    attempts_ever INTEGER NOT NULL DEFAULT 0,
    settled_at_ms INTEGER,
    lease TEXT,
    leased_until_ms INTEGER,
    body BLOB NOT NULL
);
CREATE INDEX delivery_log ON delivery (tenant, subscription, seq);
CREATE INDEX delivery_pending ON delivery (subscription, due_at_ms) WHERE state = 'pending';

-- `error` is the class of the failure, NULL for a success; `answer` the first bytes of what came back.
CREATE TABLE attempt (
    delivery INTEGER NOT NULL,
    number INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    answer BLOB NOT NULL,
    PRIMARY KEY (delivery, number)
) WITHOUT ROWID;
