-- Requests to settle more reviews at once than one person may: one asks, a second one approves or refuses. What is to be
-- settled is kept in pieces, ids of decisions with blanks between; a piece goes in the commit that settles its reviews.
CREATE TABLE review_bulk (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C",
    note TEXT COLLATE "C" NOT NULL,
    chosen TEXT COLLATE "C" NOT NULL,
    wanted BIGINT NOT NULL,
    asked_by TEXT COLLATE "C" NOT NULL,
    asked_at_ms BIGINT NOT NULL,
    decided_by TEXT COLLATE "C",
    decided_at_ms BIGINT,
    start_at_ms BIGINT,
    looked BIGINT NOT NULL DEFAULT 0,
    settled BIGINT NOT NULL DEFAULT 0,
    ended_by TEXT COLLATE "C",
    ended_at_ms BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX review_bulk_running ON review_bulk (start_at_ms) WHERE state = 'running';
CREATE INDEX review_bulk_asked ON review_bulk (asked_at_ms) WHERE state = 'asked';

CREATE TABLE review_bulk_piece (
    tenant TEXT COLLATE "C" NOT NULL,
    bulk TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    decisions TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, bulk, number)
);

-- The request by which a review was settled.
ALTER TABLE review ADD COLUMN bulk TEXT COLLATE "C";

SELECT vettance_wall(
    one,
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
) FROM unnest(ARRAY['review_bulk', 'review_bulk_piece']) AS one;
