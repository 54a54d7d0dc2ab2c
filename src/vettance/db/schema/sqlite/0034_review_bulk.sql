-- Requests to settle more reviews at once than one person may: one asks, a second one approves or refuses. What is to be
-- settled is kept in pieces, ids of decisions with blanks between; a piece goes in the commit that settles its reviews.
CREATE TABLE review_bulk (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    label TEXT,
    note TEXT NOT NULL,
    chosen TEXT NOT NULL,
    wanted INTEGER NOT NULL,
    asked_by TEXT NOT NULL,
    asked_at_ms INTEGER NOT NULL,
    decided_by TEXT,
    decided_at_ms INTEGER,
    start_at_ms INTEGER,
    looked INTEGER NOT NULL DEFAULT 0,
    settled INTEGER NOT NULL DEFAULT 0,
    ended_by TEXT,
    ended_at_ms INTEGER,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX review_bulk_running ON review_bulk (start_at_ms) WHERE state = 'running';
CREATE INDEX review_bulk_asked ON review_bulk (asked_at_ms) WHERE state = 'asked';

CREATE TABLE review_bulk_piece (
    tenant TEXT NOT NULL,
    bulk TEXT NOT NULL,
    number INTEGER NOT NULL,
    decisions TEXT NOT NULL,
    PRIMARY KEY (tenant, bulk, number)
) WITHOUT ROWID;

-- The request by which a review was settled.
ALTER TABLE review ADD COLUMN bulk TEXT;
