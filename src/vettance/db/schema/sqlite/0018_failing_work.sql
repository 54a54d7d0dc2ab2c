-- What fails in the background for one tenant or row, and is tried again: for the doctor. `subject` is an id of
-- ours, alone or behind that of its tenant; `error` the class of the error.
CREATE TABLE failing_work (
    work TEXT NOT NULL,
    subject TEXT NOT NULL,
    tries INTEGER NOT NULL,
    error TEXT NOT NULL,
    failed_at_ms INTEGER NOT NULL,
    PRIMARY KEY (work, subject)
);
