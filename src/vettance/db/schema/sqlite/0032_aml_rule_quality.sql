-- What each AML rule did, counted behind the log of AML events and the timelines of cases, as `rule_count` is for fraud.
-- Events count at their own time, alerts at the time at which they were raised.
CREATE TABLE aml_rule_count (
    tenant TEXT NOT NULL,
    width_s INTEGER NOT NULL,
    start_s INTEGER NOT NULL,
    rule TEXT NOT NULL,
    measure TEXT NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (tenant, width_s, start_s, rule, measure)
) WITHOUT ROWID;
-- How far both logs are counted. It moves in the commit of what was counted.
CREATE TABLE aml_rule_counted (
    tenant TEXT NOT NULL PRIMARY KEY,
    decision_seq INTEGER NOT NULL,
    label_seq INTEGER NOT NULL,
    swept_s INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE aml_rule_last_hit (
    tenant TEXT NOT NULL,
    rule TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, rule)
) WITHOUT ROWID;
-- Timelines are read in the order in which they were written, to count what cases turned out to be. Only what is counted
-- stands in it, so that nothing else of a case is looked for by it.
CREATE INDEX aml_case_entry_log ON aml_case_entry (tenant, seq) WHERE kind IN ('ALERTED', 'RESOLVED');
-- A line tells that an alert was raised; which one, its case and its moment say.
CREATE INDEX aml_alert_raised ON aml_alert (tenant, case_id, created_at_ms);
