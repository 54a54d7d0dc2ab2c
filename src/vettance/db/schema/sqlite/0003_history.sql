-- Feedback, answers kept for retries, events accepted for later, and what the history is searched and counted by.
-- Moments are Unix milliseconds.

-- What turned out to be true about an event.
CREATE TABLE feedback (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    target TEXT NOT NULL,
    type TEXT NOT NULL,
    label TEXT NOT NULL,
    notes TEXT,
    external_case_id TEXT,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX feedback_target ON feedback (tenant, target, id);

-- Answers by Idempotency-Key, written in the commit of what they tell of. `headers` is MessagePack.
CREATE TABLE answer (
    tenant TEXT NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    status INTEGER NOT NULL,
    content BLOB NOT NULL,
    headers BLOB NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, path, key)
) WITHOUT ROWID;
CREATE INDEX answer_age ON answer (expires_at_ms);

-- Events accepted for later. `sent` goes once it stands in the log. A `quiet` job (imported history) tells no
-- subscriber; `label` becomes feedback in the commit of its decision.
CREATE TABLE job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    received_at_ms INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    quiet INTEGER NOT NULL,
    label TEXT,
    sent BLOB,
    state TEXT NOT NULL,
    event TEXT,
    error TEXT,
    settled_at_ms INTEGER
);
CREATE INDEX job_accepted ON job (seq) WHERE state = 'accepted';
CREATE INDEX job_settled ON job (settled_at_ms) WHERE settled_at_ms IS NOT NULL;

-- What the history is searched by, beside the columns that decisions have anyway. `reasons` are codes with
-- spaces between.
ALTER TABLE decision ADD COLUMN received_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decision ADD COLUMN reasons TEXT NOT NULL DEFAULT '';
CREATE INDEX decision_tenant ON decision (tenant, seq);

-- Counts by event time, in minutes and days, written in the commit of each decision. The row of the empty code
-- counts decisions, the others those with this reason code.
CREATE TABLE rollup (
    tenant TEXT NOT NULL,
    width_s INTEGER NOT NULL,
    start_s INTEGER NOT NULL,
    code TEXT NOT NULL,
    evaluated INTEGER NOT NULL,
    review INTEGER NOT NULL,
    block INTEGER NOT NULL,
    score_sum INTEGER NOT NULL,
    PRIMARY KEY (tenant, width_s, start_s, code)
) WITHOUT ROWID;

-- Each distinct text of a tenant's decisions, numbered, with the fields it was seen in (one bit each). `folded`
-- is the text in folded case, where that takes more than the lower case of ASCII.
CREATE TABLE term (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    value TEXT NOT NULL,
    folded TEXT,
    fields INTEGER NOT NULL,
    UNIQUE (tenant, value)
);
-- Substrings of terms (by the number of the term) and of ids of decisions (by their place in the log).
CREATE VIRTUAL TABLE term_search USING fts5 (value, content = '', columnsize = 0, tokenize = 'trigram');
CREATE VIRTUAL TABLE id_search USING fts5 (digits, content = '', columnsize = 0, tokenize = 'trigram');

-- Decisions of one tenant that follow each other in the log, laid out by columns; the id is the newest `seq`.
-- Written behind the log: what is newer than a tenant's newest chunk is looked up in `decision` itself.
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    size INTEGER NOT NULL,
    evaluated_min_ms INTEGER NOT NULL,
    evaluated_max_ms INTEGER NOT NULL,
    received_min_ms INTEGER NOT NULL,
    received_max_ms INTEGER NOT NULL,
    occurred_min_ms INTEGER NOT NULL,
    occurred_max_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX chunk_tenant ON chunk (tenant, id);
CREATE TABLE chunk_column (
    chunk INTEGER NOT NULL REFERENCES chunk (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (chunk, name)
);
-- Which customers and devices were seen on a day (of event time) in decisions that stand in chunks.
CREATE TABLE roster (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    day_s INTEGER NOT NULL,
    terms BLOB NOT NULL,
    PRIMARY KEY (tenant, kind, day_s)
);

-- How far the import of a file has come: written in the commit of the jobs it has made.
CREATE TABLE import_mark (
    tenant TEXT NOT NULL,
    digest TEXT NOT NULL,
    lines INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    PRIMARY KEY (tenant, digest)
) WITHOUT ROWID;

-- Goes up whenever terms are removed, so that no chunk is stored that was laid out with a removed one.
CREATE TABLE term_epoch (
    id INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL
);
INSERT INTO term_epoch (id, epoch) VALUES (1, 1);
