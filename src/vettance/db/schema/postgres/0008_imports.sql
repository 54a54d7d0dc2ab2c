-- Imports of history. Their events wait as jobs in the state 'queued' and are decided in the order of their own
-- time once the whole file is taken. `base` is the place of the log up to which an import sees the events of others.
CREATE TABLE import_run (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    begun_at_ms BIGINT NOT NULL,
    base BIGINT,
    first_ms BIGINT,
    last_ms BIGINT,
    PRIMARY KEY (tenant, id)
);
SELECT vettance_wall(
    'import_run',
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
ALTER TABLE job ADD COLUMN import_id TEXT COLLATE "C";
ALTER TABLE job ADD COLUMN occurred_at_ms BIGINT;
CREATE INDEX job_queued ON job (tenant, import_id, occurred_at_ms, seq) WHERE state = 'queued';
ALTER TABLE aml_event ADD COLUMN import_id TEXT COLLATE "C";
