-- The stores of relays ("relay") and boost instances ("boost"): maps from text to bytes, ordered by the bytes of the keys.
CREATE TABLE leeward_store (
	store text NOT NULL,
	key text COLLATE "C" NOT NULL,
	value bytea NOT NULL,
	-- The account of a transaction with work left, by which boost instances find its records. The key of such a record
	-- ends with the transaction's hash (66 characters).
	sender text,
	PRIMARY KEY (store, key)
);

-- Signed transactions do not compress.
ALTER TABLE leeward_store ALTER COLUMN value SET STORAGE EXTERNAL;

CREATE INDEX leeward_store_sender ON leeward_store (sender) WHERE sender IS NOT NULL;
CREATE INDEX leeward_store_hash ON leeward_store (right(key, 66)) WHERE sender IS NOT NULL;

-- The process that may write to a store, with its term: a number that increases with each new holder, and a secret, since a
-- restored database may repeat a number.
CREATE TABLE leeward_holder (
	store text PRIMARY KEY,
	epoch bigint NOT NULL,
	-- The number of its last write. A write that timed out may still arrive: after a later one it changes nothing.
	seq bigint NOT NULL,
	-- The address at which other processes reach it, and the secret that they present. Null: not reachable.
	address text,
	secret text
);

-- When the holder's lease ends unless renewed. It is not in the row that each write locks, so that no renewal waits for a
-- write.
CREATE TABLE leeward_lease (
	store text PRIMARY KEY,
	until timestamptz NOT NULL
);

-- The accounts of boost's transactions. The mark is a random number, new with each write. A write with an outdated mark
-- changes nothing. The home is the boost instance that wrote last.
CREATE TABLE leeward_account (
	sender text PRIMARY KEY,
	mark bigint NOT NULL,
	home text NOT NULL,
	-- When it may be deleted, if it has no records with work left.
	until timestamptz NOT NULL
);

CREATE INDEX leeward_account_home ON leeward_account (home);
CREATE INDEX leeward_account_until ON leeward_account (until);

-- The boost instances. reported: the time of its last report that it is alive; since: the first one without an interruption.
CREATE TABLE leeward_instance (
	name text PRIMARY KEY,
	reported timestamptz NOT NULL,
	since timestamptz NOT NULL,
	reaches boolean NOT NULL
);
