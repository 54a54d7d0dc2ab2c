-- Versions of what a tenant's models are made from. `document` is what was written, `features` the whole set that it
-- made; `changes` is what is different from the version before; `origin` is the version that was gone back to.
CREATE TABLE feature_version (
    tenant TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    document TEXT COLLATE "C" NOT NULL,
    features TEXT COLLATE "C" NOT NULL,
    changes TEXT COLLATE "C" NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    origin BIGINT,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, version)
);

SELECT vettance_wall(
    'feature_version', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
