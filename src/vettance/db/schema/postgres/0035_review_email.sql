-- The e-mail address of a review whose customer is known by an id, so that it is found by either.
ALTER TABLE review ADD COLUMN email TEXT COLLATE "C";
UPDATE review SET email = decision.email FROM decision
WHERE decision.tenant = review.tenant AND decision.id = review.decision AND decision.email <> review.customer
    AND LENGTH(decision.email) <= 254;
CREATE INDEX review_email ON review (tenant, email, opened_at_ms, decision) WHERE email IS NOT NULL;
