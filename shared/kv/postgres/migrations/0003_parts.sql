-- Several processes may have a part of one store each, such as "boost" and "boost/2". A record of an account's transaction names
-- that account, by which other parts find it; its key ends with the transaction's hash (66 characters).
ALTER TABLE leeward_store ADD COLUMN sender text;

-- What earlier versions have left of boost's: records of rows with their account as the first field of their JSON.
UPDATE leeward_store
	SET sender = substring(encode(substring(value FROM 1 FOR 120), 'escape') FROM '"from":"(0x[0-9a-f]{40})"')
	WHERE store = 'boost' AND (key LIKE 'b/%' OR key LIKE 's/%');

CREATE INDEX leeward_store_sender ON leeward_store (sender) WHERE sender IS NOT NULL;
CREATE INDEX leeward_store_hash ON leeward_store (right(key, 66)) WHERE sender IS NOT NULL;

-- What the process of one part (the taker, in its term) wants of another one's.
CREATE TABLE leeward_wish (
	store text NOT NULL,
	sender text NOT NULL,
	taker text NOT NULL,
	term bigint NOT NULL,
	PRIMARY KEY (store, sender, taker)
);
