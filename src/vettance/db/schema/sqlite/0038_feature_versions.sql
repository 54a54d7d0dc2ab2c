-- Versions of what a tenant's models are made from. `document` is what was written, `features` the whole set that it
-- made; `changes` is what is different from the version before; `origin` is the version that was gone back to.
CREATE TABLE feature_version (
    tenant TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    document TEXT NOT NULL,
    features TEXT NOT NULL,
    changes TEXT NOT NULL,
    note TEXT NOT NULL,
    author TEXT NOT NULL,
    origin INTEGER,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, version)
) WITHOUT ROWID;
