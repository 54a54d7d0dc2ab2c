-- How likely officers confirm an alert, by what they said of earlier ones, in thousandths; 1001 is unknown and comes first.
ALTER TABLE aml_alert ADD COLUMN priority INTEGER NOT NULL DEFAULT 1001;
CREATE INDEX aml_alert_priority ON aml_alert (tenant, priority, id);
CREATE INDEX aml_alert_urgent ON aml_alert (tenant, state, priority, id);
CREATE INDEX aml_alert_urgent_customer ON aml_alert (tenant, customer, priority, id);
CREATE INDEX aml_alert_urgent_severity ON aml_alert (tenant, severity, priority, id);
CREATE INDEX aml_alert_urgent_typology ON aml_alert (tenant, typology, priority, id);
CREATE INDEX aml_alert_urgent_rule ON aml_alert (tenant, rule_id, priority, id);

-- Models that order the alerts of a tenant, each with its card, and which one does so.
CREATE TABLE alert_model (
    tenant TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    body TEXT NOT NULL,
    card TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, version)
);

-- `ordered_by` is the version by which all open alerts were ordered last; 0 is none.
CREATE TABLE alert_model_setting (
    tenant TEXT NOT NULL,
    is_on INTEGER NOT NULL,
    champion INTEGER,
    previous INTEGER,
    trained_matches INTEGER NOT NULL,
    trained_at_ms INTEGER NOT NULL,
    wanted INTEGER NOT NULL,
    failure TEXT,
    ordered_by INTEGER NOT NULL,
    PRIMARY KEY (tenant)
) WITHOUT ROWID;
