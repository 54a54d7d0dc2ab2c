-- Indexes that lead to the rows of an answer, however many others there are.
CREATE INDEX list_entry_list ON list_entry (tenant, id);
CREATE INDEX aml_alert_of_case ON aml_alert (tenant, case_id, id);
CREATE INDEX aml_alert_of_customer ON aml_alert (tenant, customer, id);
CREATE INDEX aml_alert_recent ON aml_alert (tenant, customer, state, origin, resolved_at_ms, id);
CREATE INDEX aml_alert_state ON aml_alert (tenant, state, id);
CREATE INDEX aml_alert_severity ON aml_alert (tenant, severity, id);
CREATE INDEX aml_alert_typology ON aml_alert (tenant, typology, id);
CREATE INDEX aml_alert_rule ON aml_alert (tenant, rule_id, id);
CREATE INDEX aml_case_customer ON aml_case (tenant, customer, id);
CREATE INDEX aml_case_state ON aml_case (tenant, state, id);
CREATE INDEX aml_case_severity ON aml_case (tenant, severity, id);
CREATE INDEX aml_case_assignee ON aml_case (tenant, assignee, id);

-- What is known of one subject and one listed entity is looked up by both. The store fills the column itself,
-- so that what versions before this one write is found as well.
ALTER TABLE aml_alert_entity ADD COLUMN customer TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE aml_alert_entity SET customer = aml_alert.customer FROM aml_alert WHERE aml_alert.id = alert;
CREATE INDEX aml_alert_entity_pair ON aml_alert_entity (tenant, customer, role, entity, alert);
CREATE FUNCTION vettance_alert_entity_customer() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NEW.customer := COALESCE((SELECT customer FROM aml_alert WHERE id = NEW.alert), '');
    RETURN NEW;
END $$;
CREATE TRIGGER aml_alert_entity_customer BEFORE INSERT ON aml_alert_entity
FOR EACH ROW WHEN (NEW.customer = '') EXECUTE FUNCTION vettance_alert_entity_customer();

-- How many alerts and cases there are of each kind, kept by the store itself with every change of one.
CREATE TABLE aml_alert_count (
    tenant TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    rule_id TEXT COLLATE "C" NOT NULL,
    typology TEXT COLLATE "C" NOT NULL,
    severity TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    -- Empty while there is none.
    resolution TEXT COLLATE "C" NOT NULL,
    alerts BIGINT NOT NULL,
    PRIMARY KEY (tenant, origin, rule_id, typology, severity, state, resolution)
) WITH (fillfactor = 50);
INSERT INTO aml_alert_count
SELECT tenant, origin, rule_id, typology, severity, state, COALESCE(resolution, ''), COUNT(*) FROM aml_alert
GROUP BY 1, 2, 3, 4, 5, 6, 7;
CREATE FUNCTION vettance_count_alert() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE aml_alert_count SET alerts = alerts - 1
        WHERE tenant = OLD.tenant AND origin = OLD.origin AND rule_id = OLD.rule_id
        AND typology = OLD.typology AND severity = OLD.severity AND state = OLD.state
        AND resolution = COALESCE(OLD.resolution, '');
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO aml_alert_count (tenant, origin, rule_id, typology, severity, state, resolution, alerts)
        VALUES (
            NEW.tenant, NEW.origin, NEW.rule_id, NEW.typology, NEW.severity, NEW.state,
            COALESCE(NEW.resolution, ''), 1
        )
        ON CONFLICT (tenant, origin, rule_id, typology, severity, state, resolution)
        DO UPDATE SET alerts = aml_alert_count.alerts + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER aml_alert_made AFTER INSERT OR DELETE ON aml_alert
FOR EACH ROW EXECUTE FUNCTION vettance_count_alert();
CREATE TRIGGER aml_alert_changed AFTER UPDATE OF state, severity, resolution, typology, rule_id ON aml_alert
FOR EACH ROW WHEN (
    (OLD.state, OLD.severity, OLD.resolution, OLD.typology, OLD.rule_id)
    IS DISTINCT FROM (NEW.state, NEW.severity, NEW.resolution, NEW.typology, NEW.rule_id)
) EXECUTE FUNCTION vettance_count_alert();

CREATE TABLE aml_case_count (
    tenant TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    severity TEXT COLLATE "C" NOT NULL,
    -- Empty where a case is nobody's.
    assignee TEXT COLLATE "C" NOT NULL,
    cases BIGINT NOT NULL,
    PRIMARY KEY (tenant, state, severity, assignee)
) WITH (fillfactor = 50);
INSERT INTO aml_case_count
SELECT tenant, state, severity, COALESCE(assignee, ''), COUNT(*) FROM aml_case GROUP BY 1, 2, 3, 4;
CREATE FUNCTION vettance_count_case() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE aml_case_count SET cases = cases - 1
        WHERE tenant = OLD.tenant AND state = OLD.state AND severity = OLD.severity
        AND assignee = COALESCE(OLD.assignee, '');
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO aml_case_count (tenant, state, severity, assignee, cases)
        VALUES (NEW.tenant, NEW.state, NEW.severity, COALESCE(NEW.assignee, ''), 1)
        ON CONFLICT (tenant, state, severity, assignee) DO UPDATE SET cases = aml_case_count.cases + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER aml_case_made AFTER INSERT OR DELETE ON aml_case
FOR EACH ROW EXECUTE FUNCTION vettance_count_case();
CREATE TRIGGER aml_case_changed AFTER UPDATE OF state, severity, assignee ON aml_case
FOR EACH ROW WHEN (
    (OLD.state, OLD.severity, OLD.assignee) IS DISTINCT FROM (NEW.state, NEW.severity, NEW.assignee)
) EXECUTE FUNCTION vettance_count_case();

SELECT vettance_wall(
    one,
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
) FROM unnest(ARRAY['aml_alert_count', 'aml_case_count']) AS one;
