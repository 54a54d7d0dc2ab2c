-- Tenants, keys, lists, rule sets; the event log and its decisions.
-- Moments are Unix milliseconds. JSON is kept as it was sent or written.

CREATE TABLE tenant (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    aml INTEGER NOT NULL,
    throttle INTEGER NOT NULL,
    quota INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenant (id),
    digest BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
) WITHOUT ROWID;

-- Requests counted against the quota, by hour of the clock, so that a restart does not give the hour back.
CREATE TABLE quota_use (
    tenant TEXT NOT NULL,
    hour INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (tenant, hour)
) WITHOUT ROWID;

-- One row for each change of configuration; processes poll it and reload what it names.
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    area TEXT NOT NULL,
    tenant TEXT NOT NULL,
    subject TEXT NOT NULL,
    at_ms INTEGER NOT NULL
);

CREATE TABLE list_entry (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    type TEXT NOT NULL,
    value TEXT NOT NULL,
    list_type TEXT NOT NULL,
    reason TEXT,
    expires_at_ms INTEGER,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    UNIQUE (tenant, type, value, list_type)
) WITHOUT ROWID;

CREATE TABLE ruleset (
    tenant TEXT NOT NULL,
    version INTEGER NOT NULL,
    document TEXT NOT NULL,
    digest TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, version)
) WITHOUT ROWID;

-- The log: what happened, in the order it was observed. Never updated.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    source TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL,
    occurred_at_ms INTEGER NOT NULL,
    sent BLOB NOT NULL
);

-- What was decided about each event, with the columns that people search by.
CREATE TABLE decision (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    evaluated_at_ms INTEGER NOT NULL,
    occurred_at_ms INTEGER NOT NULL,
    event_name TEXT NOT NULL,
    event_category TEXT NOT NULL,
    decision TEXT NOT NULL,
    score INTEGER NOT NULL,
    level TEXT NOT NULL,
    customer_id TEXT,
    email TEXT,
    device_id TEXT,
    fingerprint TEXT,
    ip TEXT,
    country TEXT,
    session_id TEXT,
    record BLOB NOT NULL
);
