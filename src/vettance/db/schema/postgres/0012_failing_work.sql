-- What fails in the background for one tenant or row, and is tried again: for the doctor. `subject` is an id of
-- ours, alone or behind that of its tenant; `error` the class of the error.
CREATE TABLE failing_work (
    work TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    tries BIGINT NOT NULL,
    error TEXT COLLATE "C" NOT NULL,
    failed_at_ms BIGINT NOT NULL,
    PRIMARY KEY (work, subject)
);
