-- The walls between tenants keep conditions from an index that call functions on a column, such as the digests of
-- long texts: every look for a name read all rows of the tenant. A column that holds the digest is compared as it is.
ALTER TABLE signal_batch ADD COLUMN sdk_session_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(sdk_session, '\', '\\')::bytea)) STORED;
ALTER TABLE signal_batch ADD COLUMN batch_id_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(batch_id, '\', '\\')::bytea)) STORED;
CREATE INDEX signal_batch_digest ON signal_batch (tenant, sdk_session_digest, batch_id_digest);
ALTER TABLE aml_event ADD COLUMN external_id_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(external_id, '\', '\\')::bytea)) STORED;
CREATE INDEX aml_event_digest ON aml_event (tenant, external_id_digest);
ALTER TABLE aml_screening ADD COLUMN external_id_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(external_id, '\', '\\')::bytea)) STORED;
CREATE INDEX aml_screening_digest ON aml_screening (tenant, external_id_digest, seq);
ALTER TABLE term ADD COLUMN value_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(value, '\', '\\')::bytea)) STORED;
CREATE INDEX term_digest ON term (tenant, value_digest);

-- A customer's name may be longer than an index row.
DROP INDEX aml_case_customer;
ALTER TABLE aml_case ADD COLUMN customer_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(customer, '\', '\\')::bytea)) STORED;
CREATE INDEX aml_case_customer ON aml_case (tenant, customer_digest, id);
CREATE INDEX aml_case_pending ON aml_case (tenant, customer_digest) WHERE state <> 'CLOSED';
DROP INDEX aml_alert_of_customer;
DROP INDEX aml_alert_recent;
ALTER TABLE aml_alert ADD COLUMN customer_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(customer, '\', '\\')::bytea)) STORED;
CREATE INDEX aml_alert_of_customer ON aml_alert (tenant, customer_digest, id);
CREATE INDEX aml_alert_recent ON aml_alert (tenant, customer_digest, state, origin, resolved_at_ms, id);
DROP INDEX aml_alert_entity_pair;
ALTER TABLE aml_alert_entity ADD COLUMN customer_digest BYTEA
    GENERATED ALWAYS AS (sha256(replace(customer, '\', '\\')::bytea)) STORED;
CREATE INDEX aml_alert_entity_pair ON aml_alert_entity (tenant, customer_digest, role, entity, alert);
