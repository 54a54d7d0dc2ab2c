-- A message once, whoever it is for. Its deliveries have its id, but for their last four digits, and hold no body
-- of their own. Those of earlier versions do, and no message.
CREATE TABLE message (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (tenant, id)
);
SELECT vettance_wall(
    'message', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);

-- A version before this one would send the empty body of such a delivery. Its leases are known by how they begin;
-- to claim what it cannot send changes nothing.
CREATE FUNCTION vettance_no_claim() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE TRIGGER delivery_claim BEFORE UPDATE OF lease ON delivery FOR EACH ROW
WHEN (substr(NEW.lease, 1, 1) <> 'w' AND length(NEW.body) = 0)
EXECUTE FUNCTION vettance_no_claim();

-- How long the body is that waits, so that what waits for a tenant is bounded.
ALTER TABLE delivery ADD COLUMN body_bytes BIGINT NOT NULL DEFAULT 0;
CREATE INDEX delivery_backlog ON delivery (tenant, seq, body_bytes) WHERE state = 'pending';
-- How many deliveries were given up because too much waited, and when the last one was.
ALTER TABLE subscription ADD COLUMN overflowed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE subscription ADD COLUMN overflowed_at_ms BIGINT;
