-- Accepted events by whose they are, so that tenants take turns however many of one wait.
CREATE INDEX job_waiting ON job (tenant, seq) WHERE state = 'accepted';
