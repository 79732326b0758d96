// What the follower remembers of open entries: one watch for each, in the order in which they were asked for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FollowBook } from "../../../../boost-proxy/follower/followBook.ts";
import { hashOf, newEntry, scene } from "../journal/journalScene.ts";

test("watches of what has ended don't pile up, even where nobody is asked for the rest", async () => {
	const { journal, clock } = await scene();
	const book = new FollowBook({ journal, clock });
	for (let n = 1; n <= 100; n += 1) {
		await journal.add(newEntry(n), "relay");
		book.sync();
		if (n > 2) await journal.end(hashOf(n), "mined");
	}
	assert.ok(book.size <= 3, `${book.size} watches for ${journal.depth} entries`);
	book.sync();
	assert.equal(book.size, 2);
	const taken = book.next(9, () => true).map(({ hash }) => hash);
	assert.deepEqual(taken, [hashOf(1), hashOf(2)]);
	await journal.close();
});
