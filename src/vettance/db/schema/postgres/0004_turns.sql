-- Before each event of AML, every process looks for what others have added for the tenant since.
CREATE INDEX aml_event_turn ON aml_event (tenant, seq);
CREATE INDEX change_turn ON change (tenant, area, seq);
