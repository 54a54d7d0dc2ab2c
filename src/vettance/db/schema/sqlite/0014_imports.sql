-- Imports of history. Their events wait as jobs in the state 'queued' and are decided in the order of their own
-- time once the whole file is taken. `base` is the place of the log up to which an import sees the events of others.
CREATE TABLE import_run (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    begun_at_ms INTEGER NOT NULL,
    base INTEGER,
    first_ms INTEGER,
    last_ms INTEGER,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
ALTER TABLE job ADD COLUMN import_id TEXT;
ALTER TABLE job ADD COLUMN occurred_at_ms INTEGER;
CREATE INDEX job_queued ON job (tenant, import_id, occurred_at_ms, seq) WHERE state = 'queued';
ALTER TABLE aml_event ADD COLUMN import_id TEXT;
