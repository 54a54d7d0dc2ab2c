-- A message once, whoever it is for. Its deliveries have its id, but for their last four digits, and hold no body
-- of their own. Those of earlier versions do, and no message.
CREATE TABLE message (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- A version before this one would send the empty body of such a delivery. Its leases are known by how they begin;
-- to claim what it cannot send changes nothing.
CREATE TRIGGER delivery_claim BEFORE UPDATE OF lease ON delivery
WHEN substr(NEW.lease, 1, 1) <> 'w' AND length(NEW.body) = 0
BEGIN
    SELECT RAISE(IGNORE);
END;

-- How long the body is that waits, so that what waits for a tenant is bounded.
ALTER TABLE delivery ADD COLUMN body_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX delivery_backlog ON delivery (tenant, seq, body_bytes) WHERE state = 'pending';
-- How many deliveries were given up because too much waited, and when the last one was.
ALTER TABLE subscription ADD COLUMN overflowed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE subscription ADD COLUMN overflowed_at_ms INTEGER;
