-- Accepted events by whose they are, so that tenants take turns however many of one wait.
CREATE INDEX job_waiting ON job (tenant, seq) WHERE state = 'accepted';

-- The AML log of a tenant in its own order. Without it a replay sorts all of it for each of its pieces.
CREATE INDEX aml_event_turn ON aml_event (tenant, seq);
