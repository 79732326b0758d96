-- What one process keeps, by its name ("relay", "boost", "boost/2"): a map from text to bytes, in the order of the bytes of its keys.
CREATE TABLE leeward_store (
	store text NOT NULL,
	key text COLLATE "C" NOT NULL,
	value bytea NOT NULL,
	-- The account of a transaction, by which the boosts on one database find each other's records. The key of such a record ends with
	-- the transaction's hash (66 characters).
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

-- What the process of one part (the taker, in its term) wants of another one's.
CREATE TABLE leeward_wish (
	store text NOT NULL,
	sender text NOT NULL,
	taker text NOT NULL,
	term text NOT NULL,
	PRIMARY KEY (store, sender, taker)
);
