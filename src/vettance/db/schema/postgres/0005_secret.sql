-- One row: a digest by which the secret that this store was made with is known, and which tells nothing of it.
CREATE TABLE deployment (
    id BIGINT PRIMARY KEY,
    secret_digest TEXT COLLATE "C" NOT NULL
);
