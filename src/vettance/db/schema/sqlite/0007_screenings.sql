-- Screenings of names against watchlists, kept with what they were made of. Moments are Unix milliseconds.

-- `sent` is the body as it came, `answer` the JSON as it was answered and is answered for ever. `index_id` names
-- the index, which is made of one version of every list; `alert` and `case_id` are set when it alerted.
CREATE TABLE aml_screening (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    external_id TEXT NOT NULL,
    decision TEXT NOT NULL,
    profile TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    index_id TEXT NOT NULL,
    alert TEXT,
    case_id TEXT,
    created_at_ms INTEGER NOT NULL,
    sent BLOB NOT NULL,
    answer BLOB NOT NULL
);
CREATE INDEX aml_screening_subject ON aml_screening (tenant, external_id, seq);

-- The listed entities behind an alert of screening, each with a digest of all that its list said then. When the
-- alert is closed as a mistake, these pairs stay quiet until the digest is another one.
CREATE TABLE aml_alert_entity (
    tenant TEXT NOT NULL,
    alert TEXT NOT NULL,
    entity TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (tenant, alert, entity)
) WITHOUT ROWID;

-- How a tenant screens: the profile of requests that name none, and review bounds (JSON, profile to 0..100) in
-- place of those of the service.
CREATE TABLE aml_screening_setting (
    tenant TEXT PRIMARY KEY,
    profile TEXT NOT NULL,
    bounds TEXT NOT NULL
) WITHOUT ROWID;
