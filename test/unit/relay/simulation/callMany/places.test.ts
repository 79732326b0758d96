// How many simulations of callers may be under way: of one client, and of all.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Places } from "../../../../../relay/simulation/callMany/places.ts";

const LIMIT = (message: RegExp) => (thrown: unknown) => {
	const { kind, message: text } = thrown as { kind: string; message: string };
	return kind === "limit" && message.test(text);
};

test("one client has its own share, and leaves room for others", () => {
	const places = new Places(3, 2);
	places.take("a");
	places.take("a");
	assert.throws(() => places.take("a"), LIMIT(/^limit exceeded: 2 simulations of one client/));
	places.take("b");
	assert.throws(() => places.take("c"), LIMIT(/^limit exceeded: too many simulations at once/));
	places.leave("a");
	places.take("c");
	assert.throws(() => places.take("b"), LIMIT(/too many/));
});

test("what is left is free again, for whoever comes", () => {
	const places = new Places(1, 1);
	for (let i = 0; i < 100; i += 1) {
		places.take(`client ${i}`);
		places.leave(`client ${i}`);
	}
	places.take("a");
	assert.throws(() => places.take("b"), LIMIT(/too many/));
});
