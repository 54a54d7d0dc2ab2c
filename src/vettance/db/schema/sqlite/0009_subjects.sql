-- Lists of a tenant's own, and screening again whoever was screened before when a list changes.

-- `tenant` is '*' for the lists that everybody is screened against.
CREATE TABLE watchlist_version_new (
    tenant TEXT NOT NULL,
    source TEXT NOT NULL,
    version TEXT NOT NULL,
    current INTEGER NOT NULL,
    entities INTEGER NOT NULL,
    names INTEGER NOT NULL,
    files TEXT NOT NULL,
    imported_at_ms INTEGER NOT NULL,
    checked_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, source, version)
) WITHOUT ROWID;
INSERT INTO watchlist_version_new
SELECT '*', source, version, current, entities, names, files, imported_at_ms, checked_at_ms FROM watchlist_version;
DROP TABLE watchlist_version;
ALTER TABLE watchlist_version_new RENAME TO watchlist_version;
ALTER TABLE watchlist_index ADD COLUMN tenant TEXT NOT NULL DEFAULT '*';
CREATE INDEX watchlist_index_newest ON watchlist_index (tenant, seq);

-- Sets of list versions (JSON, list to version) that somebody was screened against.
CREATE TABLE aml_list_set (
    id TEXT PRIMARY KEY,
    versions TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO aml_list_set SELECT 'index-' || id, versions FROM watchlist_index;

-- Everybody who was screened, as the last screening asked (`sent`, JSON) and against which set of versions
-- (`list_set`). Whoever stands under another set than the current one is still to be screened again.
CREATE TABLE aml_subject (
    tenant TEXT NOT NULL,
    external_id TEXT NOT NULL,
    role TEXT NOT NULL,
    list_set TEXT NOT NULL,
    screening TEXT NOT NULL,
    screened_at_ms INTEGER NOT NULL,
    sent BLOB NOT NULL,
    PRIMARY KEY (tenant, external_id, role)
) WITHOUT ROWID;
CREATE INDEX aml_subject_behind ON aml_subject (tenant, list_set);
INSERT INTO aml_subject
SELECT tenant, external_id, '', 'index-' || index_id, id, created_at_ms, sent FROM aml_screening AS newest
WHERE seq = (SELECT MAX(seq) FROM aml_screening WHERE tenant = newest.tenant AND external_id = newest.external_id);

-- How often a tenant's subjects were screened again, for each set of versions. `finished_at_ms` is set when none
-- stands under another set.
CREATE TABLE aml_rescreening (
    tenant TEXT NOT NULL,
    list_set TEXT NOT NULL,
    started_at_ms INTEGER NOT NULL,
    finished_at_ms INTEGER,
    subjects INTEGER NOT NULL,
    alerts INTEGER NOT NULL,
    PRIMARY KEY (tenant, list_set)
) WITHOUT ROWID;
