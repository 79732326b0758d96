// Tests who may repeat a signed request: its first client always, others once 7,200 blocks have
// passed, or when it had to be forgotten.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DIGEST_LIMITS, SignedDigests } from "../../../../relay/ingress/signedDigests.ts";
import type { Client } from "../../../../shared/client.ts";

const SIGNER = `0x${"5a".repeat(20)}`;
const HERE = "192.0.2.1";
const THERE = "198.51.100.1";

function start(limits = DIGEST_LIMITS) {
	let number = 1_000;
	const digests = new SignedDigests(limits, { tip: { head: () => ({ number }) as never } });
	/** Whether the client may. */
	const may = (address: string, digest: string | number | undefined, who: Partial<Client> = {}) => {
		const client = { address, signer: SIGNER, vouched: false, digest: digest && `${digest}`, ...who };
		try {
			digests.check({ transport: "http", client: client as Client });
			return true;
		} catch (thrown) {
			const { kind, message } = thrown as { kind: string; message: string };
			assert.deepEqual(
				[kind, message],
				["invalidRequest", "this signed request was already sent from another address: change its id"],
			);
			return false;
		}
	};
	const pass = (blocks: number): void => {
		number += blocks;
	};
	return { may, digests, pass };
}

test("its first client may repeat it, another one may not; one network of IPv6 is one client, a web page is another", () => {
	const { may } = start();
	assert.deepEqual(
		[may(HERE, "a"), may(HERE, "a"), may(THERE, "a"), may(HERE, "a")],
		[true, true, false, true],
	);
	assert.deepEqual([may("2001:db8::1", "b"), may("2001:db8::2", "b")], [true, true]);
	assert.deepEqual([may(`web ${HERE}`, "a"), may(`web ${HERE}`, "c"), may(HERE, "c")], [false, true, false]);
});

test("what another key has signed is another request, and so is another body", () => {
	const { may } = start();
	assert.ok(may(HERE, "a"));
	assert.ok(may(THERE, "a", { signer: `0x${"6b".repeat(20)}` }));
	assert.ok(may(THERE, "b"));
});

test("nothing is known of unsigned requests, of websockets, and of what a proxy has not said", () => {
	const { may, digests } = start();
	for (const who of [HERE, THERE]) {
		assert.ok(may(who, "a", { signer: null }));
		assert.ok(may(who, undefined));
		const client = { address: who, signer: SIGNER, vouched: false, digest: "a" };
		digests.check({ transport: "ws", client });
	}
});

test("it may be repeated 7,200 blocks behind its first client's last use", () => {
	const { may, pass } = start();
	assert.ok(may(HERE, "a"));
	pass(7_000);
	assert.ok(may(HERE, "a"));
	pass(7_199);
	assert.equal(may(THERE, "a"), false);
	pass(1);
	assert.ok(may(THERE, "a"));
	assert.equal(may(HERE, "a"), false, "now it is the other one's");
});

test("the 20,001st of a client displaces its own oldest one, and nobody else's", () => {
	const { may } = start();
	assert.ok(may(THERE, "theirs"));
	for (let i = 1; i <= 20_000; i += 1) assert.ok(may(HERE, i));
	assert.ok(may(HERE, 1), "used again, it is the newest");
	assert.ok(may(HERE, 20_001));
	assert.deepEqual(
		[1, 3, 20_001].map((i) => may(THERE, i)),
		[false, false, false],
	);
	assert.equal(may(HERE, "theirs"), false);
	assert.ok(may(THERE, 2), "displaced");
});

test("where all are too many, the client with the most loses its oldest", () => {
	const { may } = start({ total: 4, perClient: 3 });
	for (const i of [1, 2, 3]) assert.ok(may(HERE, i));
	assert.ok(may(THERE, 4));
	assert.ok(may("203.0.113.1", 5));
	assert.deepEqual(
		[2, 3, 4, 5].map((i) => may("203.0.113.2", i)),
		[false, false, false, false],
	);
	assert.ok(may("203.0.113.2", 1));
});
