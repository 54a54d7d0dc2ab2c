-- What each rule did, counted behind the logs of decisions and labels by hours and days of event time. `rule` is empty
-- for what is counted of all decisions; measures are named in `quality/rule_counts.py`.
CREATE TABLE rule_count (
    tenant TEXT COLLATE "C" NOT NULL,
    width_s BIGINT NOT NULL,
    start_s BIGINT NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    measure TEXT COLLATE "C" NOT NULL,
    amount DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, width_s, start_s, rule, measure)
);
-- How far both logs are counted. It moves in the commit of what was counted.
CREATE TABLE rule_counted (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    decision_seq BIGINT NOT NULL,
    label_seq BIGINT NOT NULL,
    swept_s BIGINT NOT NULL
);
CREATE TABLE rule_last_hit (
    tenant TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, rule)
);

SELECT vettance_wall(
    one,
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
) FROM unnest(ARRAY['rule_count', 'rule_counted', 'rule_last_hit']) AS one;
