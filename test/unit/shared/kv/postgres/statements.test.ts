// The deadlines of commits: a client's write is refused about a second after it was given.

import assert from "node:assert/strict";
import { test } from "node:test";
import { commitDeadline } from "../../../../../shared/kv/postgres/statements.ts";

test("a commit has a second from its first write, less after one that failed, and never none", () => {
	for (const [since, begun, isFailing, deadline] of [
		[0, 0, false, 1_000],
		// It has waited for a commit that took long.
		[0, 700, false, 1_000],
		[0, 980, false, 1_080],
		// It has waited for one that failed after a second.
		[300, 1_000, true, 1_300],
		[10, 1_000, true, 1_100],
		[990, 1_000, true, 1_500],
		// The database has been down for long.
		[9_000, 9_000, true, 9_500],
		[9_001, 9_500, true, 10_000],
	] as const)
		assert.equal(commitDeadline({ since, begun, isFailing }), deadline, `${since} ${begun} ${isFailing}`);
});

// Each write waits for at most one commit that began before it was given.
test("no write waits longer than a second and a tenth, whatever it waits for", () => {
	let [begun, isFailing] = [0, false];
	for (let round = 0; round < 20; round += 1) {
		const over = commitDeadline({ since: begun, begun, isFailing });
		for (let since = begun; since <= over; since += 10) {
			const waited = commitDeadline({ since, begun: over, isFailing: true }) - since;
			assert.ok(waited <= 1_100, `${waited} ms for a write given ${since - begun} ms into a commit`);
		}
		[begun, isFailing] = [over, true];
	}
});
