-- Long texts had two indexes by their digest: one that works it out again for each row, which the walls between tenants
-- keep conditions from, and one over the column that holds it. The second one says as well that a text is there once.
-- All locks come first: what cannot have them gives way before it has built anything.
LOCK TABLE term, signal_batch, aml_event, aml_case, aml_alert, aml_screening IN ACCESS EXCLUSIVE MODE;
CREATE UNIQUE INDEX term_of_text ON term (tenant, value_digest);
DROP INDEX term_value;
DROP INDEX term_digest;
CREATE UNIQUE INDEX signal_batch_of_session ON signal_batch (tenant, sdk_session_digest, batch_id_digest);
DROP INDEX signal_batch_name;
DROP INDEX signal_batch_digest;
CREATE UNIQUE INDEX aml_event_of_id ON aml_event (tenant, external_id_digest);
DROP INDEX aml_event_name;
DROP INDEX aml_event_digest;
CREATE UNIQUE INDEX aml_case_unclosed ON aml_case (tenant, customer_digest) WHERE state <> 'CLOSED';
DROP INDEX aml_case_of;
DROP INDEX aml_case_pending;
DROP INDEX aml_alert_of;
DROP INDEX aml_screening_of;
