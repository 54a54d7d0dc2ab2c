-- Rules that have no effect for an entity until a moment. `kind` is the pack that the rules build on. Those that are over
-- stay: a backtest of that time knows them.
CREATE TABLE snooze (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX snooze_current ON snooze (tenant, kind, until_ms) WHERE ended_at_ms IS NULL;

SELECT vettance_wall(
    'snooze', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
