-- Backtests as jobs. `ask` is what was ordered, with the whole document of the rules, as JSON.
CREATE TABLE backtest (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    ask BYTEA NOT NULL,
    progress DOUBLE PRECISION NOT NULL,
    created_at_ms BIGINT NOT NULL,
    started_at_ms BIGINT,
    ended_at_ms BIGINT,
    result BYTEA,
    error TEXT COLLATE "C",
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX backtest_under_way ON backtest (tenant) WHERE state IN ('queued', 'running');

SELECT vettance_wall(
    'backtest', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);
