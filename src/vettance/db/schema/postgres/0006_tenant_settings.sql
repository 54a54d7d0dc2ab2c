-- Settings of a tenant that have no column of their own: a JSON object, by the names of the program.
ALTER TABLE tenant ADD COLUMN settings TEXT COLLATE "C" NOT NULL DEFAULT '{}';

-- What people call a key, and when it last took a request (to the minute).
ALTER TABLE api_key ADD COLUMN name TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_key ADD COLUMN last_used_at_ms BIGINT;
