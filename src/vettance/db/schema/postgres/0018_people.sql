-- People who use the console. Moments are Unix milliseconds. `password` is an Argon2id hash in its own form,
-- `totp` the sealed secret of the second factor and `totp_new` one that is not confirmed yet. `totp_step` is
-- the last time step whose code was taken: no code is taken twice.
CREATE TABLE user_account (
    id TEXT COLLATE "C" PRIMARY KEY,
    email TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT COLLATE "C" NOT NULL,
    password TEXT COLLATE "C",
    oidc_issuer TEXT COLLATE "C",
    oidc_subject TEXT COLLATE "C",
    totp BYTEA,
    totp_new BYTEA,
    totp_step BIGINT NOT NULL DEFAULT 0,
    disabled BIGINT NOT NULL DEFAULT 0,
    theme TEXT COLLATE "C" NOT NULL DEFAULT 'auto',
    time_zone TEXT COLLATE "C" NOT NULL DEFAULT 'UTC',
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX user_account_oidc ON user_account (oidc_issuer, oidc_subject) WHERE oidc_subject IS NOT NULL;

-- What a user may do for a tenant: words of roles with spaces between.
CREATE TABLE user_membership (
    tenant TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    roles TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant, user_id)
);
CREATE INDEX user_membership_user ON user_membership (user_id);

-- Links by which a user sets a password: the digest of the token, and when it was taken.
CREATE TABLE entry_link (
    digest TEXT COLLATE "C" PRIMARY KEY,
    user_id TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    taken_at_ms BIGINT
);
CREATE INDEX entry_link_user ON entry_link (user_id);

-- Sessions of the console, by the digest of their cookie. `stage` is full, or factor while a code of the second
-- factor is still missing; `method` is what the user signed in with: password, link or oidc.
CREATE TABLE console_session (
    digest TEXT COLLATE "C" PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    user_id TEXT COLLATE "C" NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    stage TEXT COLLATE "C" NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    user_agent TEXT COLLATE "C" NOT NULL,
    created_at_ms BIGINT NOT NULL,
    seen_at_ms BIGINT NOT NULL
);
CREATE INDEX console_session_user ON console_session (user_id);
CREATE INDEX console_session_age ON console_session (seen_at_ms);

-- Failed sign-ins in a row, by account, by address and by both: keyed digests. Nothing is tried before
-- `next_at_ms`.
CREATE TABLE sign_in_failure (
    subject TEXT COLLATE "C" PRIMARY KEY,
    failures BIGINT NOT NULL,
    next_at_ms BIGINT NOT NULL,
    last_at_ms BIGINT NOT NULL
);
CREATE INDEX sign_in_failure_age ON sign_in_failure (last_at_ms);

-- Addresses (keyed digests) from which a user has signed in before.
CREATE TABLE known_address (
    user_id TEXT COLLATE "C" NOT NULL,
    address_digest TEXT COLLATE "C" NOT NULL,
    seen_at_ms BIGINT NOT NULL,
    PRIMARY KEY (user_id, address_digest)
);

-- Codes that take the place of the second factor, once each: digests.
CREATE TABLE recovery_code (
    user_id TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, digest)
);

SELECT vettance_wall(
    one,
    'tenant = ANY ((SELECT string_to_array(current_setting(''vettance.tenant'', true), '',''))::TEXT[])'
) FROM unnest(ARRAY['user_membership', 'console_session']) AS one;
