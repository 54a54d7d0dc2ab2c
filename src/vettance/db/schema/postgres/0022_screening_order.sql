-- The newest screenings of a tenant, for the screening desk.
CREATE INDEX aml_screening_tenant ON aml_screening (tenant, seq);
