// Requests to one upstream: headers and bodies for our relay and for a third party, the choice of the transport, and `nonce
// too low`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dialectOf } from "../../../../boost-proxy/dialects/dialects.ts";
import type {
	Attempted,
	Breaker,
	DialectName,
	Post,
	Transport,
} from "../../../../boost-proxy/domain/ports.ts";
import { HttpUpstream } from "../../../../boost-proxy/upstream/upstream.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { signedTransaction } from "../../../support/txFactory.ts";

const TX = signedTransaction({});
const SENDABLE = { hash: TX.hash, from: TX.from, raw: TX.raw, path: "noreverts", search: "a=b" } as const;
const ASKER = {
	...{ address: "192.0.2.9", signer: "0x00000000000000000000000000000000000000aa" },
	...{ origin: "https://wallet.example", via: null, signature: "0xsig:0x01" },
	life: { bytes: 0, onGone: () => {} },
};
const RESULT = (result: unknown, id: unknown = 1) => ({
	...({ kind: "answered", status: 200, retryAfterS: undefined } as const),
	body: Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result })),
});
const TOO_LOW = {
	...RESULT(null),
	body: Buffer.from(
		'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"nonce too low: next nonce 4, tx nonce 0"}}',
	),
};

class FakeTransport implements Transport {
	readonly posts: Post[] = [];
	answers: Awaited<ReturnType<Transport["post"]>>[] = [];
	onPost: () => Promise<void> = async () => {};
	async post(post: Post) {
		this.posts.push(post);
		await this.onPost();
		return this.answers.shift() ?? RESULT(TX.hash);
	}
	async get() {
		return RESULT({});
	}
	async close() {}
}

function fixture(dialect: DialectName | null) {
	const transport = new FakeTransport();
	const readTransport = new FakeTransport();
	const clock = new ManualClock();
	const outcomes: Attempted["outcome"][] = [];
	const breaker = {
		isUnavailable: false,
		run: async <T extends Attempted>(_: string, attempt: (cut: never) => Promise<T>) => {
			const attempted = await attempt(undefined as never);
			outcomes.push(attempted.outcome);
			return attempted;
		},
	} as unknown as Breaker;
	const both = (one: Transport) => ({
		fast: { transport: one, asIs: false },
		noreverts: { transport: one, asIs: false },
	});
	const upstream = new HttpUpstream(
		{
			name: dialect === null ? "relay" : "fallback",
			boostSecret: "s3cret",
			unfitPaths: { fast: null, noreverts: null },
		},
		{
			...{
				breaker,
				clock,
				statusTransport: transport,
				transports: both(transport),
				readTransports: both(readTransport),
			},
			dialect: dialect === null ? null : dialectOf(dialect),
			readyBlobs: null,
		},
	);
	return { upstream, transport, readTransport, clock, outcomes };
}

test("our relay gets the client's address and the secret", async () => {
	const { upstream, transport } = fixture(null);
	await upstream.deliver(SENDABLE, { deadlineMs: 1_000, caller: ASKER, whole: null });
	const [post] = transport.posts;
	assert.equal(post?.target, "/noreverts?a=b");
	assert.deepEqual(post?.headers, {
		"x-boost-auth": "s3cret",
		"x-forwarded-for": "192.0.2.9",
		origin: "https://wallet.example",
		"x-boost-signer": ASKER.signer,
	});
});

test("an unchanged body is sent with its signature", async () => {
	const { upstream, transport } = fixture(null);
	const whole = { body: Buffer.from("as it came"), id: "x" };
	transport.answers = [RESULT(TX.hash, "x")];
	const delivery = await upstream.deliver(SENDABLE, { deadlineMs: 1_000, caller: ASKER, whole });
	assert.equal(delivery?.kind, "acknowledged");
	assert.equal(transport.posts[0]?.body, whole.body);
	assert.equal(transport.posts[0]?.headers["x-flashbots-signature"], ASKER.signature);
	assert.equal(transport.posts[0]?.headers["x-boost-signer"], undefined);
});

test("a third party gets nothing of the client, and never the unchanged body", async () => {
	const { upstream, transport } = fixture("mevblocker");
	const whole = { body: Buffer.from("as it came"), id: "x" };
	await upstream.deliver(SENDABLE, { deadlineMs: 1_000, caller: ASKER, whole });
	assert.deepEqual(transport.posts[0]?.headers, {});
	assert.match(
		String(transport.posts[0]?.body),
		/^\{"jsonrpc":"2\.0","id":1,"method":"eth_sendRawTransaction"/,
	);
});

for (const known of [true, false]) {
	test(`"nonce too low" of one that is ${known ? "" : "not "}there: it is asked for by its hash, once, in the time that is left`, async () => {
		const { upstream, transport, clock } = fixture(null);
		const whole = { body: Buffer.from("as it came"), id: 1 };
		transport.answers = [TOO_LOW, RESULT(known ? { hash: TX.hash.toUpperCase().replace("0X", "0x") } : null)];
		transport.onPost = () => clock.advance(300);
		const delivery = await upstream.deliver(SENDABLE, { deadlineMs: 1_000, caller: ASKER, whole });
		assert.equal(delivery?.kind, known ? "acknowledged" : "rejected");
		assert.equal(transport.posts.length, 2);
		assert.match(String(transport.posts[1]?.body), /"eth_getTransactionByHash"/);
		assert.equal(transport.posts[1]?.deadlineMs, 700);
	});
}

test("a request that found no free connection is not counted", async () => {
	const { upstream, transport, outcomes } = fixture(null);
	transport.answers = [{ kind: "failed", fault: "timeout", sent: false }];
	const delivery = await upstream.deliver(SENDABLE, { deadlineMs: 1_000, caller: null, whole: null });
	assert.deepEqual(delivery, { kind: "failed", fault: "timeout", sent: false });
	transport.answers = [{ kind: "failed", fault: "timeout", sent: true }];
	await upstream.deliver(SENDABLE, { deadlineMs: 1_000, caller: null, whole: null });
	assert.deepEqual(outcomes, ["aborted", "timeout"]);
});
