-- Retention takes ids out of the index again, by their places in the log.
CREATE INDEX id_search_rowid ON id_search (rowid);
