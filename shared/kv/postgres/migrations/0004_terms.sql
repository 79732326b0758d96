-- A term is its number and its secret: the number alone may come twice.
ALTER TABLE leeward_wish ALTER COLUMN term TYPE text;
