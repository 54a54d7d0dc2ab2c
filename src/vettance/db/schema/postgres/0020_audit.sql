-- The audit log: one chain for each tenant, and one (`*`) for what concerns none. `digests` are those of the four
-- parts of an entry with their salts; `chain` is SHA-256 over the value before it and the entry. The head is kept
-- apart, so that a removed newest entry shows.
CREATE TABLE audit_entry (
    tenant TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    at_ms BIGINT NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    digests TEXT COLLATE "C" NOT NULL,
    chain TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE TABLE audit_head (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    seq BIGINT NOT NULL,
    chain TEXT COLLATE "C" NOT NULL
);
-- Actor, subject, before and after of an entry. An erasure replaces names here, and adds an entry that says so.
CREATE TABLE audit_part (
    tenant TEXT COLLATE "C" NOT NULL,
    entry TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    salt TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, entry, name)
);

SELECT vettance_wall(
    one,
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
) FROM unnest(ARRAY['audit_head', 'audit_part']) AS one;

-- Entries are read and added, never changed; they go only with their tenant, whose deletion is noted first. The
-- policies bind the owner of the table as well.
ALTER TABLE audit_entry ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_entry FORCE ROW LEVEL SECURITY;
CREATE POLICY audit_read ON audit_entry FOR SELECT USING (
    (SELECT current_setting('vettance.tenant', true)) = '*'
    OR tenant = ANY ((SELECT string_to_array(current_setting('vettance.tenant', true), ','))::TEXT[])
);
CREATE POLICY audit_add ON audit_entry FOR INSERT WITH CHECK (
    (SELECT current_setting('vettance.tenant', true)) = '*'
    OR tenant = ANY ((SELECT string_to_array(current_setting('vettance.tenant', true), ','))::TEXT[])
);
CREATE POLICY audit_end ON audit_entry FOR DELETE USING (
    EXISTS (SELECT 1 FROM change WHERE change.tenant = audit_entry.tenant AND change.area = 'tenant_deleted')
);
