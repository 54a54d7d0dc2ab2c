-- How many list entries a tenant has, expired ones included: what is added asks whether there is room.
CREATE TABLE list_count (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    entries BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE FUNCTION vettance_count_list_entry() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO list_count (tenant, entries) VALUES (NEW.tenant, 1)
        ON CONFLICT (tenant) DO UPDATE SET entries = list_count.entries + 1;
    ELSE
        UPDATE list_count SET entries = entries - 1 WHERE tenant = OLD.tenant;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER list_entry_made AFTER INSERT OR DELETE ON list_entry
FOR EACH ROW EXECUTE FUNCTION vettance_count_list_entry();
-- Behind the trigger, which keeps writers out until the end of the migration.
INSERT INTO list_count (tenant, entries) SELECT tenant, COUNT(*) FROM list_entry GROUP BY tenant;

CREATE INDEX list_entry_expiry ON list_entry (tenant, expires_at_ms) WHERE expires_at_ms IS NOT NULL;

SELECT vettance_wall(
    'list_count',
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
