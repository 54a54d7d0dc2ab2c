-- Labels as rules count them: what feedback changed about an event, in the order in which it was told. `weight` is
-- 1, or -1 for a label that another one replaced; `at_ms` is the event time at which it counts, and `after_seq` the
-- place of the log behind which it was given.
CREATE TABLE label (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    event TEXT NOT NULL,
    fraud INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    received_at_ms INTEGER NOT NULL,
    after_seq INTEGER NOT NULL
);
CREATE INDEX label_tenant ON label (tenant, seq);
CREATE INDEX label_event ON label (tenant, event);
