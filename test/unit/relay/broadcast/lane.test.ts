// One builder's lane with scripted answers: order, fairness between clients, shares, staleness,
// cancels.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lane, type LaneItem, type LaneOptions } from "../../../../relay/broadcast/lane.ts";
import type { DeliveryAnswer } from "../../../../relay/domain/events.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/**
 * A lane whose sends wait until they are answered by name. `a1` is an item of client and sender
 * `a`, `a/1` one with a key of its own, `plain a1` that client's plain bundle, `bid a1` its bid
 * with slot 1, `cancel a1` the cancel of an item.
 */
function fixture({ capacity = 100, concurrency = 1, perSecond = 1_000 }: Partial<LaneOptions> = {}) {
	const clock = new ManualClock();
	const sent: string[] = [];
	const answers: [string, DeliveryAnswer][] = [];
	const open = new Map<string, (answer: DeliveryAnswer) => void>();
	const mayRepeat = new Map<string, () => boolean>();
	const held = { is: true };
	/** Names of what is signed later, each with what gives the signature. */
	const signing = new Map<string, (() => void) | null>();
	const lane = new Lane(
		{ capacity, concurrency, perSecond },
		{
			clock,
			maySend: () => held.is,
			send: ({ body, signature }, rights) => {
				const name = String(body);
				mayRepeat.set(name, () => rights.shouldSend());
				assert.equal(signature, `signed ${name}`);
				sent.push(name);
				rights.onSent();
				return new Promise((resolve) => open.set(name, resolve));
			},
		},
	);
	const push = (name: string, block = 101, more: Partial<LaneItem> = {}): void => {
		const subject = name.replace("cancel ", "");
		const kind = subject.startsWith("plain ") ? "plain" : subject.startsWith("bid ") ? "bid" : "user";
		const client = subject.replace(/^(plain|bid) /, "").slice(0, 1);
		const key = kind !== "user" || subject.includes("/") ? subject : client;
		const slot = Number(subject.at(-1));
		lane.push({
			...{ key, subject, client, kind, block, requestId: null, urgent: name.startsWith("cancel ") },
			...(kind === "bid" ? { slot } : {}),
			make() {
				const signed = { body: Buffer.from(name), signature: `signed ${name}` };
				if (!signing.has(name)) return signed;
				return new Promise((resolve) => signing.set(name, () => resolve(signed)));
			},
			answered: (answer) => answers.push([name, answer]),
			...more,
		});
	};
	const answer = async (name: string, how: DeliveryAnswer = "accepted"): Promise<void> => {
		const resolve = open.get(name);
		assert.ok(resolve !== undefined, `${name} was not sent`);
		open.delete(name);
		resolve(how);
		await clock.advance(0);
	};
	const next = () => open.keys().next().value;
	/** Answers what is in flight, one by one, until nothing is. */
	const drain = async (): Promise<readonly string[]> => {
		for (let name = next(); name !== undefined; name = next()) await answer(name);
		assert.equal(lane.depth, 0);
		return sent;
	};
	const unsent = () => answers.filter(([, how]) => how === "unsent").map(([name]) => name);
	const repeats = (name: string) => mayRepeat.get(name)?.();
	return { lane, push, answer, drain, sent, unsent, repeats, clock, held, signing };
}

interface Row {
	readonly pushed: readonly string[];
	/** In sending order, one at a time; the first one at once. */
	readonly sent: readonly string[];
	/** Answered `unsent`, in this order. */
	readonly unsent?: readonly string[];
	readonly capacity?: number;
}

const TURNS: Readonly<Record<string, Row>> = {
	"one more than fits is answered unsent at once, and never sent": {
		capacity: 2,
		pushed: ["a", "b", "c", "d"],
		sent: ["a", "b", "c"],
		unsent: ["d"],
	},
	"cancels go before all that waits, and are the last to find no place": {
		capacity: 2,
		pushed: ["a", "b", "c", "cancel x", "cancel y", "cancel z"],
		sent: ["a", "cancel x", "cancel y", "b", "c"],
		unsent: ["cancel z"],
	},
	"clients are served in turn, however many keys and items one of them has": {
		pushed: [...Array.from({ length: 12 }, (_, i) => `x/${i}`), "a1", "a2", "b1"],
		sent: ["x/0", "a1", "b1", "x/1", "a2", ...Array.from({ length: 10 }, (_, i) => `x/${i + 2}`)],
	},
	"clients are served in turn with their plain bundles and their cancels too": {
		pushed: ["r", "plain a1", "plain a2", "plain a3", "plain b1", "cancel c/1", "cancel c/2", "cancel d/1"],
		sent: ["r", "cancel c/1", "cancel d/1", "cancel c/2", "plain a1", "plain b1", "plain a2", "plain a3"],
	},
	"a user's transaction and its cancel go before everyone's plain bundles": {
		pushed: ["plain a1", "plain a2", "plain b1", "plain b2", "b1", "cancel b2"],
		sent: ["plain a1", "cancel b2", "b1", "plain b1", "plain a2", "plain b2"],
	},
	"the cancel of a plain bundle goes behind users' transactions, and before its client's other bundles": {
		pushed: ["plain a1", "plain a2", "plain b1", "plain a3", "cancel plain a1", "u1", "u2"],
		sent: ["plain a1", "u1", "u2", "plain b1", "cancel plain a1", "plain a2", "plain a3"],
	},
	"a client has an eighth of what may wait; others, its cancels and its other kind find room": {
		capacity: 16,
		pushed: [
			...["r", "a/1", "a/2", "a/3", "plain a4", "plain a5", "plain a6"],
			...["cancel a/1", "cancel a/2", "cancel a/3", "b1"],
		],
		sent: ["r", "cancel a/1", "cancel a/2", "a/1", "b1", "a/2", "plain a4", "plain a5"],
		unsent: ["a/3", "plain a6", "cancel a/3"],
	},
	"bids go behind users' transactions and cancels, the first slot of each target before the second of any": {
		pushed: ["r", "bid a2", "bid a1", "bid b2", "bid c1", "u1", "cancel v1", "bid b1"],
		sent: ["r", "cancel v1", "u1", "bid a1", "bid c1", "bid b1", "bid a2", "bid b2"],
	},
	"a bid's cancel goes before other bids, and plain bundles take turns with all bids": {
		pushed: ["r", "plain p1", "bid a2", "cancel bid b1", "plain p2", "bid a3"],
		sent: ["r", "plain p1", "cancel bid b1", "bid a2", "bid a3", "plain p2"],
	},
	"plain bundles of many clients take no user's room": {
		capacity: 2,
		pushed: ["r", "plain a", "plain b", "plain c", "u", "v"],
		sent: ["r", "u", "v", "plain a", "plain b"],
		unsent: ["plain c"],
	},
};

for (const [name, { pushed, sent, unsent = [], capacity = 100 }] of Object.entries(TURNS)) {
	test(name, async () => {
		const lane = fixture({ capacity, concurrency: 1 });
		for (const one of pushed) lane.push(one);
		assert.deepEqual(lane.sent, sent.slice(0, 1));
		assert.deepEqual(lane.unsent(), unsent);
		assert.deepEqual(await lane.drain(), sent);
		assert.deepEqual(lane.unsent(), unsent);
		lane.push("later");
		assert.equal(lane.sent.at(-1), "later");
	});
}

test("while another relay may have the store only cancels are sent or repeated; what waits for later is sent afterwards", async () => {
	const { push, answer, sent, unsent, repeats, held, clock } = fixture();
	for (const name of ["a1", "b1", "cancel a2"]) push(name);
	assert.equal(repeats("a1"), true);
	held.is = false;
	assert.equal(repeats("a1"), false);
	await answer("a1");
	assert.deepEqual([sent, unsent()], [["a1", "cancel a2"], []]);
	assert.equal(repeats("cancel a2"), true);
	await answer("cancel a2");
	push("c1");
	assert.deepEqual(
		[sent, unsent()],
		[
			["a1", "cancel a2"],
			["b1", "c1"],
		],
	);
	await clock.advance(0);
	held.is = true;
	push("d1");
	assert.deepEqual(sent, ["a1", "cancel a2", "d1"]);
});

test("of one client's items the one sent least recently goes first", async () => {
	const { lane, push, answer, drain, sent } = fixture();
	const one = (name: string, block: number) => push(name, block, { client: "one" });
	for (const name of ["a1", "b1", "c1"]) one(name, 101);
	await answer("a1");
	await answer("b1");
	// "c1" is under way; of the next block only two are sent before the one after it.
	lane.setHead(101);
	for (const name of ["a1", "b1", "c1", "d1"]) one(name, 102);
	await answer("c1");
	await answer("d1");
	lane.setHead(102);
	for (const name of ["a1", "b1", "c1", "d1"]) one(name, 103);
	push("e1", 103);
	sent.length = 0;
	assert.deepEqual(await drain(), ["e1", "b1", "c1", "d1", "a1"]);
});

test("each client's highest item goes first, and no client uses another's turn", async () => {
	const { push, drain } = fixture();
	const worth = (name: string, client: string, wei: number) => push(name, 101, { client, worth: wei });
	worth("r", "other", 0);
	const [GWEI, TRANSFER] = [1e9, 21_000];
	for (const [name, gwei] of [
		["a1", 1],
		["b1", 3],
		["c1", 2],
		["d1", 3.001],
		["e1", 0],
	] as const)
		worth(name, "one", gwei * GWEI * TRANSFER);
	for (const name of ["x1", "y1"]) worth(name, "two", GWEI);
	// Items that pay alike go in the order in which they came.
	assert.deepEqual(await drain(), ["r", "b1", "x1", "d1", "y1", "c1", "a1", "e1"]);
});

test("a sender's items are sent one after another, whatever the answers, its cancels first; senders are served in turn", async () => {
	const { push, answer, sent } = fixture({ capacity: 100, concurrency: 2 });
	for (const name of ["a1", "a2", "a3", "b1", "b2", "c1"]) push(name);
	assert.deepEqual(sent, ["a1", "b1"]);
	await answer("a1", "failed");
	await answer("b1", "timeout");
	await answer("c1");
	assert.deepEqual(sent, ["a1", "b1", "c1", "a2", "b2"]);
	push("cancel a3");
	await answer("b2");
	assert.equal(sent.at(-1), "b2");
	await answer("a2");
	assert.deepEqual(sent.slice(5), ["cancel a3"]);
	await answer("cancel a3");
	assert.deepEqual(sent.slice(5), ["cancel a3", "a3"]);
});

test("what is withdrawn is not sent, is answered unsent, makes room, and can be sent again", async () => {
	const { push, drain, unsent, lane } = fixture({ capacity: 16, concurrency: 1 });
	for (const name of ["a1", "a2", "a3", "b1", "cancel a2"]) push(name);
	lane.withdraw("a", "a2");
	lane.withdraw("a", "nothing");
	lane.withdraw("z", "z1");
	// Not what is under way, and not the cancel.
	lane.withdraw("a", "a1");
	assert.deepEqual([unsent(), lane.depth], [["a2"], 4]);
	push("a2", 102);
	assert.deepEqual(await drain(), ["a1", "cancel a2", "b1", "a3", "a2"]);
});

test("what must not go out any more when its signature comes is answered unsent; its cancel goes out behind it", async () => {
	const { push, unsent, lane, sent, clock, held, signing, drain } = fixture({
		capacity: 100,
		concurrency: 8,
	});
	const begun: string[] = [];
	for (const name of ["a1", "b1", "c1", "d1", "cancel e1", "f1"]) {
		signing.set(name, null);
		push(name, name === "c1" ? 101 : 102, { left: () => begun.push(name) });
	}
	lane.withdraw("a", "a1");
	push("cancel a1", 102);
	push("b1", 102);
	lane.setHead(101);
	const sign = async (...names: readonly string[]) => {
		for (const name of names) signing.get(name)?.();
		signing.clear();
		await clock.advance(0);
	};
	assert.deepEqual([sent, unsent(), begun, lane.depth], [[], [], [], 8]);
	held.is = false;
	const waiting = signing.get("f1") ?? null;
	await sign("a1", "b1", "c1", "d1", "cancel e1");
	assert.deepEqual([unsent(), begun], [["a1", "b1", "c1", "d1", "b1"], ["cancel e1"]]);
	held.is = true;
	waiting?.();
	await clock.advance(0);
	assert.deepEqual(begun, ["cancel e1", "f1"]);
	assert.deepEqual(await drain(), ["cancel e1", "cancel a1", "f1"]);
});

test("what waits for the head or an earlier block is answered unsent; cancels are sent", async () => {
	const { push, drain, unsent, lane, sent, clock } = fixture({ capacity: 2, concurrency: 1 });
	push("out", 101);
	push("stale", 101);
	push("late", 100);
	push("cancel x", 101);
	lane.setHead(101);
	for (const name of ["next", "other"]) push(name, 102);
	assert.deepEqual(unsent().sort(), ["late", "stale"]);
	assert.deepEqual(await drain(), ["out", "cancel x", "next", "other"]);
	push("past", 101);
	await clock.advance(0);
	assert.deepEqual([unsent().at(-1), lane.depth], ["past", 0]);
	// A head that goes back makes fresh again what comes after it.
	lane.setHead(100);
	push("fresh", 101);
	assert.equal(sent.at(-1), "fresh");
});

test("searchers have three quarters of a second's requests; users' are never held back, and count", async () => {
	const { push, answer, sent, clock } = fixture({ perSecond: 8 });
	const goOn = async (): Promise<readonly string[]> => {
		for (let name = sent.at(-1); name !== undefined; name = sent.length > 0 ? sent.at(-1) : undefined) {
			const before = sent.length;
			await answer(name);
			if (sent.length === before) break;
		}
		return sent.splice(0);
	};
	for (let i = 1; i <= 9; i += 1) push(`bid a${i}`);
	assert.deepEqual(
		await goOn(),
		[1, 2, 3, 4, 5, 6].map((i) => `bid a${i}`),
	);
	await clock.advance(600);
	for (const name of ["u1", "u2", "u3"]) push(name);
	assert.deepEqual(await goOn(), ["u1", "u2", "u3"]);
	await clock.advance(399);
	assert.deepEqual(sent, []);
	// The six of the first moment are a second old, and the three of users are not.
	await clock.advance(1);
	assert.deepEqual(await goOn(), ["bid a7", "bid a8", "bid a9"]);
});
