-- Changes of what a tenant's model may do that need somebody else's approval; those that were decided stay.
CREATE TABLE model_change (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    change TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    decided_by TEXT COLLATE "C",
    broken_glass TEXT COLLATE "C",
    created_at_ms BIGINT NOT NULL,
    decided_at_ms BIGINT,
    PRIMARY KEY (tenant, id)
);

SELECT vettance_wall(
    'model_change', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);

-- What a model reached on the newest frauds when it was made, for the metrics; empty for those made before.
ALTER TABLE model ADD COLUMN average_precision DOUBLE PRECISION;

-- How far the newest decisions were from those that the model in service was trained on, measured once a week.
CREATE TABLE model_drift (
    tenant TEXT COLLATE "C" NOT NULL,
    measured_at_ms BIGINT NOT NULL,
    version BIGINT NOT NULL,
    rows_measured BIGINT NOT NULL,
    largest DOUBLE PRECISION NOT NULL,
    drift TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, measured_at_ms)
);

SELECT vettance_wall(
    'model_drift', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
