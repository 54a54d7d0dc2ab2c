-- Events of streams. `kind` tells jobs of AML from those of fraud.
ALTER TABLE job ADD COLUMN kind TEXT NOT NULL DEFAULT 'fraud';

-- What was taken from streams, by the id of each message: written in the commit of its job, before the broker is told, so
-- that a message that comes again is known. `message` is a digest of its consumer and its id, `digest` one of its content.
-- `result_due` is 1 until what became of it is sent where its consumer sends results or dead letters.
CREATE TABLE stream_message (
    seq INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    message BLOB NOT NULL,
    digest BLOB NOT NULL,
    consumer TEXT NOT NULL,
    job TEXT NOT NULL,
    accepted_at_ms INTEGER NOT NULL,
    result_due INTEGER NOT NULL,
    UNIQUE (tenant, message)
);
CREATE INDEX stream_message_due ON stream_message (tenant, consumer, seq) WHERE result_due = 1;
CREATE INDEX stream_message_age ON stream_message (accepted_at_ms);

-- One row for each consumer of a stream: what it has taken and sent, counted in the same commits.
CREATE TABLE stream_consumer (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    repeated INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    results_sent INTEGER NOT NULL,
    dead_letters_sent INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
