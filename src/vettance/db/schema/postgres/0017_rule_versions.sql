-- The life of a version of a rule set. What was saved before is in force or was once; what the version of the
-- service before this one saves is in force at once. `decided_at_ms` is when it was approved or rejected; `broken_glass` says why
-- it was put into force without approval; `origin` is the version whose document was taken back into force.
ALTER TABLE ruleset ADD COLUMN state TEXT COLLATE "C" NOT NULL DEFAULT 'active';
ALTER TABLE ruleset ADD COLUMN author TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE ruleset ADD COLUMN approved_by TEXT COLLATE "C";
ALTER TABLE ruleset ADD COLUMN decided_at_ms BIGINT;
ALTER TABLE ruleset ADD COLUMN activated_at_ms BIGINT;
ALTER TABLE ruleset ADD COLUMN broken_glass TEXT COLLATE "C";
ALTER TABLE ruleset ADD COLUMN origin BIGINT;
UPDATE ruleset SET activated_at_ms = created_at_ms;
UPDATE ruleset SET state = 'retired' WHERE version < (
    SELECT MAX(version) FROM ruleset AS newest WHERE newest.tenant = ruleset.tenant
);
ALTER TABLE aml_ruleset ADD COLUMN state TEXT COLLATE "C" NOT NULL DEFAULT 'active';
ALTER TABLE aml_ruleset ADD COLUMN author TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE aml_ruleset ADD COLUMN approved_by TEXT COLLATE "C";
ALTER TABLE aml_ruleset ADD COLUMN decided_at_ms BIGINT;
ALTER TABLE aml_ruleset ADD COLUMN activated_at_ms BIGINT;
ALTER TABLE aml_ruleset ADD COLUMN broken_glass TEXT COLLATE "C";
ALTER TABLE aml_ruleset ADD COLUMN origin BIGINT;
UPDATE aml_ruleset SET activated_at_ms = created_at_ms;
UPDATE aml_ruleset SET state = 'retired' WHERE version < (
    SELECT MAX(version) FROM aml_ruleset AS newest WHERE newest.tenant = aml_ruleset.tenant
);

-- Who took which step with a version, and when. Never changed.
CREATE TABLE rule_step (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    step TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
SELECT vettance_wall(
    'rule_step', 'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
);

-- What a key may do; null is what every key could do before.
ALTER TABLE api_key ADD COLUMN scopes TEXT COLLATE "C";
