-- The audit log: one chain for each tenant, and one (`*`) for what concerns none. `digests` are those of the four
-- parts of an entry with their salts; `chain` is SHA-256 over the value before it and the entry. The head is kept
-- apart, so that a removed newest entry shows.
CREATE TABLE audit_entry (
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    at_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    digests TEXT NOT NULL,
    chain TEXT NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE TABLE audit_head (
    tenant TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    chain TEXT NOT NULL
);
-- Actor, subject, before and after of an entry. An erasure replaces names here, and adds an entry that says so.
CREATE TABLE audit_part (
    tenant TEXT NOT NULL,
    entry TEXT NOT NULL,
    name TEXT NOT NULL,
    salt TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (tenant, entry, name)
);
