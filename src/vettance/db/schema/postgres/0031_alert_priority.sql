-- How likely officers confirm an alert, by what they said of earlier ones, in thousandths; 1001 is unknown and comes first.
ALTER TABLE aml_alert ADD COLUMN priority BIGINT NOT NULL DEFAULT 1001;
CREATE INDEX aml_alert_priority ON aml_alert (tenant, priority, id);
CREATE INDEX aml_alert_urgent ON aml_alert (tenant, state, priority, id);
CREATE INDEX aml_alert_urgent_customer ON aml_alert (tenant, customer_digest, priority, id);
CREATE INDEX aml_alert_urgent_severity ON aml_alert (tenant, severity, priority, id);
CREATE INDEX aml_alert_urgent_typology ON aml_alert (tenant, typology, priority, id);
CREATE INDEX aml_alert_urgent_rule ON aml_alert (tenant, rule_id, priority, id);

-- Models that order the alerts of a tenant, each with its card, and which one does so.
CREATE TABLE alert_model (
    tenant TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    card TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, version)
);

-- `ordered_by` is the version by which all open alerts were ordered last; 0 is none.
CREATE TABLE alert_model_setting (
    tenant TEXT COLLATE "C" NOT NULL,
    is_on BIGINT NOT NULL,
    champion BIGINT,
    previous BIGINT,
    trained_matches BIGINT NOT NULL,
    trained_at_ms BIGINT NOT NULL,
    wanted BIGINT NOT NULL,
    failure TEXT COLLATE "C",
    ordered_by BIGINT NOT NULL,
    PRIMARY KEY (tenant)
);

SELECT vettance_wall(
    'alert_model', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
SELECT vettance_wall(
    'alert_model_setting',
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
