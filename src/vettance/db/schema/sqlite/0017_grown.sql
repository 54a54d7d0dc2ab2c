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
ALTER TABLE aml_alert_entity ADD COLUMN customer TEXT NOT NULL DEFAULT '';
UPDATE aml_alert_entity SET customer = COALESCE((SELECT customer FROM aml_alert WHERE id = alert), '');
CREATE INDEX aml_alert_entity_pair ON aml_alert_entity (tenant, customer, role, entity, alert);
CREATE TRIGGER aml_alert_entity_customer AFTER INSERT ON aml_alert_entity WHEN NEW.customer = ''
BEGIN
    UPDATE aml_alert_entity SET customer = COALESCE((SELECT customer FROM aml_alert WHERE id = NEW.alert), '')
    WHERE tenant = NEW.tenant AND alert = NEW.alert AND entity = NEW.entity;
END;

-- How many alerts and cases there are of each kind, kept by the store itself with every change of one.
CREATE TABLE aml_alert_count (
    tenant TEXT NOT NULL,
    origin TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    typology TEXT NOT NULL,
    severity TEXT NOT NULL,
    state TEXT NOT NULL,
    -- Empty while there is none.
    resolution TEXT NOT NULL,
    alerts INTEGER NOT NULL,
    PRIMARY KEY (tenant, origin, rule_id, typology, severity, state, resolution)
) WITHOUT ROWID;
INSERT INTO aml_alert_count
SELECT tenant, origin, rule_id, typology, severity, state, COALESCE(resolution, ''), COUNT(*) FROM aml_alert
GROUP BY 1, 2, 3, 4, 5, 6, 7;
CREATE TRIGGER aml_alert_made AFTER INSERT ON aml_alert
BEGIN
    INSERT INTO aml_alert_count (tenant, origin, rule_id, typology, severity, state, resolution, alerts)
    VALUES (
        NEW.tenant, NEW.origin, NEW.rule_id, NEW.typology, NEW.severity, NEW.state,
        COALESCE(NEW.resolution, ''), 1
    )
    ON CONFLICT (tenant, origin, rule_id, typology, severity, state, resolution)
    DO UPDATE SET alerts = aml_alert_count.alerts + 1;
END;
CREATE TRIGGER aml_alert_gone AFTER DELETE ON aml_alert
BEGIN
    UPDATE aml_alert_count SET alerts = alerts - 1
    WHERE tenant = OLD.tenant AND origin = OLD.origin AND rule_id = OLD.rule_id AND typology = OLD.typology
    AND severity = OLD.severity AND state = OLD.state AND resolution = COALESCE(OLD.resolution, '');
END;
CREATE TRIGGER aml_alert_changed AFTER UPDATE OF state, severity, resolution, typology, rule_id ON aml_alert
WHEN OLD.state <> NEW.state OR OLD.severity <> NEW.severity OR OLD.resolution IS NOT NEW.resolution
OR OLD.typology <> NEW.typology OR OLD.rule_id <> NEW.rule_id
BEGIN
    UPDATE aml_alert_count SET alerts = alerts - 1
    WHERE tenant = OLD.tenant AND origin = OLD.origin AND rule_id = OLD.rule_id AND typology = OLD.typology
    AND severity = OLD.severity AND state = OLD.state AND resolution = COALESCE(OLD.resolution, '');
    INSERT INTO aml_alert_count (tenant, origin, rule_id, typology, severity, state, resolution, alerts)
    VALUES (
        NEW.tenant, NEW.origin, NEW.rule_id, NEW.typology, NEW.severity, NEW.state,
        COALESCE(NEW.resolution, ''), 1
    )
    ON CONFLICT (tenant, origin, rule_id, typology, severity, state, resolution)
    DO UPDATE SET alerts = aml_alert_count.alerts + 1;
END;

CREATE TABLE aml_case_count (
    tenant TEXT NOT NULL,
    state TEXT NOT NULL,
    severity TEXT NOT NULL,
    -- Empty where a case is nobody's.
    assignee TEXT NOT NULL,
    cases INTEGER NOT NULL,
    PRIMARY KEY (tenant, state, severity, assignee)
) WITHOUT ROWID;
INSERT INTO aml_case_count
SELECT tenant, state, severity, COALESCE(assignee, ''), COUNT(*) FROM aml_case GROUP BY 1, 2, 3, 4;
CREATE TRIGGER aml_case_made AFTER INSERT ON aml_case
BEGIN
    INSERT INTO aml_case_count (tenant, state, severity, assignee, cases)
    VALUES (NEW.tenant, NEW.state, NEW.severity, COALESCE(NEW.assignee, ''), 1)
    ON CONFLICT (tenant, state, severity, assignee) DO UPDATE SET cases = aml_case_count.cases + 1;
END;
CREATE TRIGGER aml_case_gone AFTER DELETE ON aml_case
BEGIN
    UPDATE aml_case_count SET cases = cases - 1
    WHERE tenant = OLD.tenant AND state = OLD.state AND severity = OLD.severity
    AND assignee = COALESCE(OLD.assignee, '');
END;
CREATE TRIGGER aml_case_changed AFTER UPDATE OF state, severity, assignee ON aml_case
WHEN OLD.state <> NEW.state OR OLD.severity <> NEW.severity OR OLD.assignee IS NOT NEW.assignee
BEGIN
    UPDATE aml_case_count SET cases = cases - 1
    WHERE tenant = OLD.tenant AND state = OLD.state AND severity = OLD.severity
    AND assignee = COALESCE(OLD.assignee, '');
    INSERT INTO aml_case_count (tenant, state, severity, assignee, cases)
    VALUES (NEW.tenant, NEW.state, NEW.severity, COALESCE(NEW.assignee, ''), 1)
    ON CONFLICT (tenant, state, severity, assignee) DO UPDATE SET cases = aml_case_count.cases + 1;
END;
