-- Models of tenants: each with its features and its card, and which one serves a tenant and how.
CREATE TABLE model (
    tenant TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    features TEXT NOT NULL,
    body TEXT NOT NULL,
    card TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, version)
);

CREATE TABLE model_setting (
    tenant TEXT NOT NULL,
    mode TEXT NOT NULL,
    may_block INTEGER NOT NULL,
    features TEXT NOT NULL,
    champion INTEGER,
    previous INTEGER,
    trained_frauds INTEGER NOT NULL,
    trained_at_ms INTEGER NOT NULL,
    wanted INTEGER NOT NULL,
    failure TEXT,
    PRIMARY KEY (tenant)
) WITHOUT ROWID;
