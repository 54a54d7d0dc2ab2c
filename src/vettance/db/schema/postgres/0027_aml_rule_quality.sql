-- What each AML rule did, counted behind the log of AML events and the timelines of cases, as `rule_count` is for fraud.
-- Events count at their own time, alerts at the time at which they were raised.
CREATE TABLE aml_rule_count (
    tenant TEXT COLLATE "C" NOT NULL,
    width_s BIGINT NOT NULL,
    start_s BIGINT NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    measure TEXT COLLATE "C" NOT NULL,
    amount DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, width_s, start_s, rule, measure)
);
-- How far both logs are counted. It moves in the commit of what was counted.
CREATE TABLE aml_rule_counted (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    decision_seq BIGINT NOT NULL,
    label_seq BIGINT NOT NULL,
    swept_s BIGINT NOT NULL
);
CREATE TABLE aml_rule_last_hit (
    tenant TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, rule)
);
-- Timelines are read in the order in which they were written, to count what cases turned out to be. Only what is counted
-- stands in it, so that nothing else of a case is looked for by it.
CREATE INDEX aml_case_entry_log ON aml_case_entry (tenant, seq) WHERE kind IN ('ALERTED', 'RESOLVED');
-- A line tells that an alert was raised; which one, its case and its moment say.
CREATE INDEX aml_alert_raised ON aml_alert (tenant, case_id, created_at_ms);

SELECT vettance_wall(
    one,
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
) FROM unnest(ARRAY['aml_rule_count', 'aml_rule_counted', 'aml_rule_last_hit']) AS one;
