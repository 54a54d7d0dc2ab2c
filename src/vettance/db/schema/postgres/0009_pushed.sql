-- A rule set that builds on a pack: the text that was pushed. `document` is what it came to, and stands alone.
ALTER TABLE ruleset ADD COLUMN pushed TEXT COLLATE "C";
ALTER TABLE aml_ruleset ADD COLUMN pushed TEXT COLLATE "C";
