-- What browsers report: signing keys of their tokens, batches of signals, and what a session stood at when an
-- event of it was decided. Moments are Unix milliseconds.

-- Whether `/collect` takes an API key (Mode C), and whether browsers must say where they come from.
ALTER TABLE tenant ADD COLUMN collect_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN require_origin INTEGER NOT NULL DEFAULT 0;

-- Names of signing keys, newest last. The keys themselves are derived from the secret of the deployment and
-- the name, and never stored. Tokens signed by a key are refused from `refused_from_ms` on.
CREATE TABLE token_key (
    seq INTEGER PRIMARY KEY,
    kid TEXT NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL,
    refused_from_ms INTEGER
);

-- Queued batches. The unique key is what makes a repeated batch one without effect.
CREATE TABLE signal_batch (
    -- Never used again, even after the newest rows were deleted: readers remember how far they have read.
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    sdk_session TEXT NOT NULL,
    batch_id TEXT NOT NULL,
    tenant_session TEXT,
    received_at_ms INTEGER NOT NULL,
    signals BLOB NOT NULL,
    UNIQUE (tenant, sdk_session, batch_id)
);
CREATE INDEX signal_batch_age ON signal_batch (received_at_ms);

-- The queued signals of the session as they stood when the event was decided: a replay must see the same.
ALTER TABLE event ADD COLUMN signals BLOB;
