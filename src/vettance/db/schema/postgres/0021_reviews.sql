-- Reviews: what people decide about decisions that were held. `rank` orders the queue: points of score and amount in
-- milliseconds (a point is half an hour) less the due time, so that a review grows more urgent by waiting.
-- `free_at_ms` is when a claim ends, `tell_at_ms` when a settlement can be taken back no more.
CREATE TABLE review (
    tenant TEXT COLLATE "C" NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    score BIGINT NOT NULL,
    amount_points BIGINT NOT NULL,
    rank BIGINT NOT NULL,
    opened_at_ms BIGINT NOT NULL,
    due_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    customer TEXT COLLATE "C",
    claimed_by TEXT COLLATE "C",
    free_at_ms BIGINT NOT NULL DEFAULT 0,
    outcome TEXT COLLATE "C",
    label TEXT COLLATE "C",
    note TEXT COLLATE "C",
    settled_by TEXT COLLATE "C",
    settled_at_ms BIGINT,
    entries TEXT COLLATE "C",
    tell_at_ms BIGINT,
    check_state TEXT COLLATE "C",
    check_outcome TEXT COLLATE "C",
    checked_by TEXT COLLATE "C",
    PRIMARY KEY (tenant, decision)
);
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
    tenant TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    reviews BIGINT NOT NULL,
    PRIMARY KEY (tenant, state)
) WITH (fillfactor = 50);
CREATE FUNCTION vettance_count_review() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE review_count SET reviews = reviews - 1 WHERE tenant = OLD.tenant AND state = OLD.state;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO review_count (tenant, state, reviews) VALUES (NEW.tenant, NEW.state, 1)
        ON CONFLICT (tenant, state) DO UPDATE SET reviews = review_count.reviews + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER review_made AFTER INSERT OR DELETE ON review
FOR EACH ROW EXECUTE FUNCTION vettance_count_review();
CREATE TRIGGER review_changed AFTER UPDATE OF state ON review
FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION vettance_count_review();

SELECT vettance_wall(
    one,
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
) FROM unnest(ARRAY['review', 'review_count']) AS one;
