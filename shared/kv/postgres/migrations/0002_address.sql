-- Where the holder is reached by those that do not hold the store, and what they show it. Null: by nobody.
ALTER TABLE leeward_holder ADD COLUMN address text, ADD COLUMN secret text;
