-- Changes of what a tenant's model may do that need somebody else's approval; those that were decided stay.
CREATE TABLE model_change (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    change TEXT NOT NULL,
    state TEXT NOT NULL,
    note TEXT NOT NULL,
    author TEXT NOT NULL,
    decided_by TEXT,
    broken_glass TEXT,
    created_at_ms INTEGER NOT NULL,
    decided_at_ms INTEGER,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- What a model reached on the newest frauds when it was made, for the metrics; empty for those made before.
ALTER TABLE model ADD COLUMN average_precision REAL;

-- How far the newest decisions were from those that the model in service was trained on, measured once a week.
CREATE TABLE model_drift (
    tenant TEXT NOT NULL,
    measured_at_ms INTEGER NOT NULL,
    version INTEGER NOT NULL,
    rows_measured INTEGER NOT NULL,
    largest REAL NOT NULL,
    drift TEXT NOT NULL,
    PRIMARY KEY (tenant, measured_at_ms)
) WITHOUT ROWID;
