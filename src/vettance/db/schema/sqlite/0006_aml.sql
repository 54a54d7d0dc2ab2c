-- Watching for money laundering: events, alerts, cases. Apart from fraud; nothing here is told to webhooks.
-- Moments are Unix milliseconds.

CREATE TABLE aml_ruleset (
    tenant TEXT NOT NULL,
    version INTEGER NOT NULL,
    document TEXT NOT NULL,
    digest TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, version)
) WITHOUT ROWID;

-- How a tenant works: whether a case needs two officers to close, and whether names of events are screened.
CREATE TABLE aml_setting (
    tenant TEXT PRIMARY KEY,
    four_eyes INTEGER NOT NULL DEFAULT 0,
    inline_screening INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- The log: what happened, in the order it was observed, with what was answered. `digest` names the payload as
-- a JSON value; the unique key makes one of simultaneous posts the first.
CREATE TABLE aml_event (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    external_id TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL,
    occurred_at_ms INTEGER NOT NULL,
    digest BLOB NOT NULL,
    status TEXT NOT NULL,
    alerts BLOB NOT NULL,
    sent BLOB NOT NULL,
    record BLOB NOT NULL,
    UNIQUE (tenant, external_id)
);

-- One case for each customer at a time. `proposed_by` is the first of the four eyes.
CREATE TABLE aml_case (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    customer TEXT NOT NULL,
    state TEXT NOT NULL,
    severity TEXT NOT NULL,
    assignee TEXT,
    alerts INTEGER NOT NULL,
    opened_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    resolution TEXT,
    proposed_by TEXT,
    resolved_by TEXT,
    resolved_at_ms INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX aml_case_open ON aml_case (tenant, customer) WHERE state <> 'CLOSED';
CREATE INDEX aml_case_list ON aml_case (tenant, id);

-- `origin` is `rule` or `screening`; `subject` the screening of the latter. `events` counts what is behind it.
CREATE TABLE aml_alert (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    case_id TEXT NOT NULL,
    customer TEXT NOT NULL,
    origin TEXT NOT NULL,
    typology TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    severity TEXT NOT NULL,
    summary TEXT NOT NULL,
    figures BLOB NOT NULL,
    subject TEXT,
    state TEXT NOT NULL,
    resolution TEXT,
    events INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    last_at_ms INTEGER NOT NULL,
    resolved_at_ms INTEGER
) WITHOUT ROWID;
CREATE INDEX aml_alert_customer ON aml_alert (tenant, customer, typology);
CREATE INDEX aml_alert_case ON aml_alert (case_id);
CREATE INDEX aml_alert_list ON aml_alert (tenant, id);

CREATE TABLE aml_alert_event (
    tenant TEXT NOT NULL,
    alert TEXT NOT NULL,
    event TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    PRIMARY KEY (tenant, alert, event)
) WITHOUT ROWID;

-- The timeline of a case: what was done, by whom, in words.
CREATE TABLE aml_case_entry (
    seq INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    case_id TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX aml_case_timeline ON aml_case_entry (case_id, seq);
