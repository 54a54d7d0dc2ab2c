-- Backtests as jobs. `ask` is what was ordered, with the whole document of the rules, as JSON.
CREATE TABLE backtest (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    ask BLOB NOT NULL,
    progress REAL NOT NULL,
    created_at_ms INTEGER NOT NULL,
    started_at_ms INTEGER,
    ended_at_ms INTEGER,
    result BLOB,
    error TEXT,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX backtest_under_way ON backtest (tenant) WHERE state IN ('queued', 'running');
