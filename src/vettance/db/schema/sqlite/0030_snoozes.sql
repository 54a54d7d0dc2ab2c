-- Rules that have no effect for an entity until a moment. `kind` is the pack that the rules build on. Those that are over
-- stay: a backtest of that time knows them.
CREATE TABLE snooze (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    rule TEXT NOT NULL,
    type TEXT NOT NULL,
    value TEXT NOT NULL,
    reason TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    ended_at_ms INTEGER,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX snooze_current ON snooze (tenant, kind, until_ms) WHERE ended_at_ms IS NULL;
