-- What the relay and the boost instances keep ("relay", "boost"): a map from text to bytes, in the order of the bytes of its keys.
CREATE TABLE leeward_store (
	store text NOT NULL,
	key text COLLATE "C" NOT NULL,
	value bytea NOT NULL,
	-- The account of a transaction with work left, by which the boost instances find its records. The key of such a record ends with the
	-- transaction's hash (66 characters).
	sender text,
	PRIMARY KEY (store, key)
);

-- Signed transactions do not get smaller.
ALTER TABLE leeward_store ALTER COLUMN value SET STORAGE EXTERNAL;

CREATE INDEX leeward_store_sender ON leeward_store (sender) WHERE sender IS NOT NULL;
CREATE INDEX leeward_store_hash ON leeward_store (right(key, 66)) WHERE sender IS NOT NULL;

-- Who may write to a store now. A term is its number, which is one more for each new holder, and its secret: after a restore the
-- number alone may come twice.
CREATE TABLE leeward_holder (
	store text PRIMARY KEY,
	epoch bigint NOT NULL,
	-- Of its last write. One that was given up may still arrive: behind a later one it changes nothing.
	seq bigint NOT NULL,
	-- Where it is reached by those that do not hold the store, and what they show it. Null: by nobody.
	address text,
	secret text
);

-- How long the holder has the store without a renewal. Apart from the row that each write locks, so that no renewal waits for a write.
CREATE TABLE leeward_lease (
	store text PRIMARY KEY,
	until timestamptz NOT NULL
);

-- The accounts of boost's transactions. The mark is a random number, new with each write: a write that names another one changes
-- nothing. The home is the boost instance that wrote last.
CREATE TABLE leeward_account (
	sender text PRIMARY KEY,
	mark bigint NOT NULL,
	home text NOT NULL,
	-- When it may be removed, if it has no records with work left.
	until timestamptz NOT NULL
);

CREATE INDEX leeward_account_home ON leeward_account (home);
CREATE INDEX leeward_account_until ON leeward_account (until);

-- The boost instances. Reported: when each has said last that it is alive; since: without an interruption.
CREATE TABLE leeward_instance (
	name text PRIMARY KEY,
	reported timestamptz NOT NULL,
	since timestamptz NOT NULL,
	reaches boolean NOT NULL
);
