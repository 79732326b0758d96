// No key of the store is in the range of another kind.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as keys from "../../../../relay/domain/storeKeys.ts";

test("no kind of key begins as another one does", () => {
	const all = Object.entries(keys);
	assert.ok(all.length > 10);
	for (const [name, key] of all) {
		const others = all.filter(([other]) => other !== name);
		const shared = others.filter(([, other]) => other.startsWith(key)).map(([other]) => other);
		assert.deepEqual(shared, [], `${name} is ${key}`);
	}
});
