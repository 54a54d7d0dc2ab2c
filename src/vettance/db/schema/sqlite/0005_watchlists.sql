-- Versions of watchlists, and the index that is made of the newest of each. What they hold lies in files of the
-- data folder; here stands which of them count. Lists belong to the deployment, not to a tenant.

CREATE TABLE watchlist_version (
    source TEXT NOT NULL,
    version TEXT NOT NULL,
    current INTEGER NOT NULL,
    entities INTEGER NOT NULL,
    names INTEGER NOT NULL,
    files TEXT NOT NULL,
    imported_at_ms INTEGER NOT NULL,
    checked_at_ms INTEGER NOT NULL,
    PRIMARY KEY (source, version)
) WITHOUT ROWID;

CREATE TABLE watchlist_index (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    versions TEXT NOT NULL,
    entities INTEGER NOT NULL,
    names INTEGER NOT NULL,
    built_at_ms INTEGER NOT NULL
);
