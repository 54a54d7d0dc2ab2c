-- Reviews: what people decide about decisions that were held. `rank` orders the queue: points of score and amount in
-- milliseconds (a point is half an hour) less the due time, so that a review grows more urgent by waiting.
-- `free_at_ms` is when a claim ends, `tell_at_ms` when a settlement can be taken back no more.
CREATE TABLE review (
    tenant TEXT NOT NULL,
    decision TEXT NOT NULL,
    state TEXT NOT NULL,
    score INTEGER NOT NULL,
    amount_points INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    opened_at_ms INTEGER NOT NULL,
    due_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    customer TEXT,
    claimed_by TEXT,
    free_at_ms INTEGER NOT NULL DEFAULT 0,
    outcome TEXT,
    label TEXT,
    note TEXT,
    settled_by TEXT,
    settled_at_ms INTEGER,
    entries TEXT,
    tell_at_ms INTEGER,
    check_state TEXT,
    check_outcome TEXT,
    checked_by TEXT,
    PRIMARY KEY (tenant, decision)
) WITHOUT ROWID;
CREATE INDEX review_queue ON review (tenant, rank DESC, decision) WHERE state IN ('open', 'claimed');
CREATE INDEX review_rank ON review (tenant, rank, decision);
CREATE INDEX review_opened ON review (tenant, opened_at_ms, decision);
CREATE INDEX review_state_rank ON review (tenant, state, rank, decision);
CREATE INDEX review_state_opened ON review (tenant, state, opened_at_ms, decision);
CREATE INDEX review_customer ON review (tenant, customer, opened_at_ms, decision) WHERE customer IS NOT NULL;
CREATE INDEX review_claim ON review (claimed_by) WHERE state = 'claimed';
CREATE INDEX review_free ON review (free_at_ms) WHERE state = 'claimed';
CREATE INDEX review_tell ON review (tell_at_ms) WHERE tell_at_ms IS NOT NULL;
CREATE INDEX review_expiry ON review (expires_at_ms) WHERE state IN ('open', 'claimed');
CREATE INDEX review_check ON review (tenant, check_state, settled_at_ms) WHERE check_state IS NOT NULL;

CREATE TABLE review_count (
    tenant TEXT NOT NULL,
    state TEXT NOT NULL,
    reviews INTEGER NOT NULL,
    PRIMARY KEY (tenant, state)
) WITHOUT ROWID;
CREATE TRIGGER review_made AFTER INSERT ON review
BEGIN
    INSERT INTO review_count (tenant, state, reviews) VALUES (NEW.tenant, NEW.state, 1)
    ON CONFLICT (tenant, state) DO UPDATE SET reviews = review_count.reviews + 1;
END;
CREATE TRIGGER review_gone AFTER DELETE ON review
BEGIN
    UPDATE review_count SET reviews = reviews - 1 WHERE tenant = OLD.tenant AND state = OLD.state;
END;
CREATE TRIGGER review_changed AFTER UPDATE OF state ON review WHEN OLD.state <> NEW.state
BEGIN
    UPDATE review_count SET reviews = reviews - 1 WHERE tenant = OLD.tenant AND state = OLD.state;
    INSERT INTO review_count (tenant, state, reviews) VALUES (NEW.tenant, NEW.state, 1)
    ON CONFLICT (tenant, state) DO UPDATE SET reviews = review_count.reviews + 1;
END;
