-- Who holds leases is looked for twice a second; few rows have one at a time.
CREATE INDEX delivery_leased ON delivery (lease) WHERE lease IS NOT NULL;
