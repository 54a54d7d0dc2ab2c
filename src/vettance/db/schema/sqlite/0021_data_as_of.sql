-- The day of the data, as the publisher states it; NULL where its files state none.
ALTER TABLE watchlist_version ADD COLUMN data_as_of_ms INTEGER;
