-- How many list entries a tenant has, expired ones included: what is added asks whether there is room.
CREATE TABLE list_count (
    tenant TEXT NOT NULL PRIMARY KEY,
    entries INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO list_count (tenant, entries) SELECT tenant, COUNT(*) FROM list_entry GROUP BY tenant;
CREATE TRIGGER list_entry_made AFTER INSERT ON list_entry
BEGIN
    INSERT INTO list_count (tenant, entries) VALUES (NEW.tenant, 1)
    ON CONFLICT (tenant) DO UPDATE SET entries = list_count.entries + 1;
END;
CREATE TRIGGER list_entry_gone AFTER DELETE ON list_entry
BEGIN
    UPDATE list_count SET entries = entries - 1 WHERE tenant = OLD.tenant;
END;

CREATE INDEX list_entry_expiry ON list_entry (tenant, expires_at_ms) WHERE expires_at_ms IS NOT NULL;
