-- What one process keeps, by its name ("relay", "boost"): a map from text to bytes, in the order of the bytes of its keys.
CREATE TABLE leeward_store (
	store text NOT NULL,
	key text COLLATE "C" NOT NULL,
	value bytea NOT NULL,
	PRIMARY KEY (store, key)
);

-- Signed transactions do not get smaller.
ALTER TABLE leeward_store ALTER COLUMN value SET STORAGE EXTERNAL;

-- Who may write to a store now. The epoch is one more for each new holder; what an older one writes is refused.
CREATE TABLE leeward_holder (
	store text PRIMARY KEY,
	epoch bigint NOT NULL,
	-- Of its last write. One that was given up may still arrive: behind a later one it changes nothing.
	seq bigint NOT NULL,
	-- Of the session that holds the store's lock.
	pid integer NOT NULL,
	-- A holder that has not said anything for so long is gone.
	until timestamptz NOT NULL
);
