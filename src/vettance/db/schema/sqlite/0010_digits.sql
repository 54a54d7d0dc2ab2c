-- Chunks hold the digits of ids from now on. They are made of the log and are made anew when there are none; the
-- index of ids is filled again with them.
DELETE FROM chunk_column;
DELETE FROM chunk;
INSERT INTO id_search (id_search) VALUES ('delete-all');
