-- Models of tenants: each with its features and its card, and which one serves a tenant and how.
CREATE TABLE model (
    tenant TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    features TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    card TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, version)
);

CREATE TABLE model_setting (
    tenant TEXT COLLATE "C" NOT NULL,
    mode TEXT COLLATE "C" NOT NULL,
    may_block BIGINT NOT NULL,
    features TEXT COLLATE "C" NOT NULL,
    champion BIGINT,
    previous BIGINT,
    trained_frauds BIGINT NOT NULL,
    trained_at_ms BIGINT NOT NULL,
    wanted BIGINT NOT NULL,
    failure TEXT COLLATE "C",
    PRIMARY KEY (tenant)
);

SELECT vettance_wall(
    'model', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
SELECT vettance_wall(
    'model_setting', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
