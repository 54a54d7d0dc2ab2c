-- What each rule did, counted behind the logs of decisions and labels by hours and days of event time. `rule` is empty
-- for what is counted of all decisions; measures are named in `quality/rule_counts.py`.
CREATE TABLE rule_count (
    tenant TEXT NOT NULL,
    width_s INTEGER NOT NULL,
    start_s INTEGER NOT NULL,
    rule TEXT NOT NULL,
    measure TEXT NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (tenant, width_s, start_s, rule, measure)
) WITHOUT ROWID;
-- How far both logs are counted. It moves in the commit of what was counted.
CREATE TABLE rule_counted (
    tenant TEXT NOT NULL PRIMARY KEY,
    decision_seq INTEGER NOT NULL,
    label_seq INTEGER NOT NULL,
    swept_s INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE rule_last_hit (
    tenant TEXT NOT NULL,
    rule TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, rule)
) WITHOUT ROWID;
