-- Parties of events are screened too. `role` is empty where the subject of an alert is the customer itself, and
-- names the other party otherwise, so that what is remembered of the one says nothing of the other.
ALTER TABLE aml_alert_entity ADD COLUMN role TEXT COLLATE "C" NOT NULL DEFAULT '';
