-- What a page of a session sent after the session's time was over, sealed: it is shown to the same user again.
ALTER TABLE console_session ADD COLUMN kept_form BLOB;
