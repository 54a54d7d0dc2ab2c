-- An index row of PostgreSQL holds 2,704 bytes at the most, and a text of 1,024 characters takes up to 4,096: such
-- texts are found, and kept unique, by their digests. The texts themselves stay as they are. `dialect.py` asks by
-- the same expression; the doubled backslashes make the cast to bytes one that changes nothing.

ALTER TABLE term DROP CONSTRAINT term_tenant_value_key;
CREATE UNIQUE INDEX term_value ON term (tenant, sha256(replace(value, '\', '\\')::bytea));

ALTER TABLE signal_batch DROP CONSTRAINT signal_batch_tenant_sdk_session_batch_id_key;
CREATE UNIQUE INDEX signal_batch_name ON signal_batch
    (tenant, sha256(replace(sdk_session, '\', '\\')::bytea), sha256(replace(batch_id, '\', '\\')::bytea));

ALTER TABLE aml_event DROP CONSTRAINT aml_event_tenant_external_id_key;
CREATE UNIQUE INDEX aml_event_name ON aml_event (tenant, sha256(replace(external_id, '\', '\\')::bytea));

DROP INDEX aml_case_open;
CREATE UNIQUE INDEX aml_case_of ON aml_case (tenant, sha256(replace(customer, '\', '\\')::bytea)) WHERE state <> 'CLOSED';

DROP INDEX aml_alert_customer;
CREATE INDEX aml_alert_of ON aml_alert (tenant, sha256(replace(customer, '\', '\\')::bytea), typology);

DROP INDEX aml_screening_subject;
CREATE INDEX aml_screening_of ON aml_screening (tenant, sha256(replace(external_id, '\', '\\')::bytea), seq);
