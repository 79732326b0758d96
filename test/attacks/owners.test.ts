// Somebody else brings a user's signed bytes, before or after the user, with the relay well, out or back: the user's path, refund
// and cancel hold at the relay and at the fallback.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type BoostWorld, startBoostWorld } from "../support/attacks/boostWorld.ts";
import { ask, attackerAddress, HONEST, resultOf, type WireCall } from "../support/attacks/wire.ts";
import type { RelayProcess } from "../support/processes.ts";
import { mineAll } from "../support/systems.ts";
import { rawTransaction, signedTransaction, type TestAccount, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const STRANGER = attackerAddress(1);
const ETHER = 10n ** 18n;
const [THEIRS, OWN] = [testAccount(71).address, testAccount(72).address];
const ANSWER_MS = 30_000;

/** When the first and the second of the two come. */
const TIMES = {
	"with the relay well": ["well", "well"],
	"with the relay out": ["out", "out"],
	"the second with the relay out": ["well", "out"],
	"the second with the relay back": ["out", "back"],
} as const;

/** Who comes first, the user's path, the recipients that they name, and how it ends. */
interface Case {
	readonly isStrangerFirst: boolean;
	readonly path: "/noreverts" | "/fullprivacy";
	readonly refund: string;
	readonly end: "mined" | "both cancel" | "the sender signs";
}

const CASES: readonly Case[] = [
	{ isStrangerFirst: true, path: "/noreverts", refund: `?refundRecipient=${OWN}`, end: "mined" },
	{ isStrangerFirst: true, path: "/noreverts", refund: "", end: "both cancel" },
	{ isStrangerFirst: true, path: "/noreverts", refund: `?refundRecipient=${OWN}`, end: "the sender signs" },
	{ isStrangerFirst: false, path: "/noreverts", refund: "", end: "mined" },
	{ isStrangerFirst: false, path: "/noreverts", refund: `?refundRecipient=${OWN}`, end: "both cancel" },
	{ isStrangerFirst: true, path: "/fullprivacy", refund: "", end: "mined" },
	{ isStrangerFirst: true, path: "/fullprivacy", refund: "", end: "the sender signs" },
	{ isStrangerFirst: false, path: "/fullprivacy", refund: "", end: "both cancel" },
];

interface Brought extends Case {
	readonly name: string;
	readonly by: TestAccount;
	readonly raw: string;
	readonly hash: string;
}

let world: BoostWorld;
let accounts = 9_000_000;
before(async () => {
	world = await startBoostWorld({ env: { REQUEST_BUDGET_MS: "30000" } });
});
after(() => world?.stop());

const callAt = (path: string, from: string): Omit<WireCall, "body"> => ({
	url: `${world.boost.url}${path}`,
	from,
	deadlineMs: ANSWER_MS,
});

async function bring({ raw, hash, path, refund }: Brought, isStranger: boolean): Promise<void> {
	const call = isStranger
		? callAt(`/fast?refundRecipient=${THEIRS}`, STRANGER)
		: callAt(`${path}${refund}`, HONEST);
	assert.equal(await resultOf("eth_sendRawTransaction", [raw], call), hash);
}

const cancel = async ({ hash }: Brought, from: string, key?: string) => {
	const call = { ...callAt("/fast", from), ...(key === undefined ? {} : { key }) };
	const { result, error } = await ask("eth_cancelTransaction", [hash], call);
	return error?.message ?? result;
};

async function assertStage(one: Brought, stage: string): Promise<void> {
	await until(`${one.name} is ${stage}`, async () => (await world.relay.client.stage(one.hash)) === stage);
}

/** As the user wants it, wherever it is pending. */
async function assertUsers(one: Brought, at: RelayProcess): Promise<void> {
	const { fastMode, shared, refundRecipient, status, stage } = await at.client.status(one.hash);
	if (stage === undefined) return;
	assert.deepEqual(
		{ fastMode, shared, refundRecipient, status },
		{ fastMode: false, shared: false, refundRecipient: null, status: "UNKNOWN" },
		`${one.name} at the ${at === world.relay ? "relay" : "fallback"}`,
	);
}

for (const [name, [first, second]] of Object.entries(TIMES)) {
	it(`${name}, a stranger gets neither path nor refund nor cancel of what he brings`, async () => {
		const { system, relay, fallback } = world;
		assert.ok(fallback !== null);
		// Boost only streams what comes on the other path.
		const possible = CASES.filter(({ path }) => path === "/noreverts" || second === "well");
		const all = possible.map((one): Brought => {
			const by = testAccount(accounts++);
			const whose = one.isStrangerFirst ? "a stranger's, then" : "before a stranger,";
			return {
				...one,
				...{ by, raw: `0x${rawTransaction({ by }).toString("hex")}`, hash: signedTransaction({ by }).hash },
				name: `${whose} the user's on ${one.path}${one.refund}, ${one.end}`,
			};
		});
		await system.chain.fund(
			all.map(({ by }) => by),
			ETHER,
		);
		await system.nextBlock(relay);
		if (first === "out") await world.fails();
		for (const one of all) await bring(one, one.isStrangerFirst);
		if (first === "well" && second === "out") await world.fails();
		if (second === "back") await world.recovers();
		for (const one of all) await bring(one, !one.isStrangerFirst);
		for (const one of all) {
			assert.equal(await cancel(one, STRANGER), true, "his own wish");
			assert.notEqual(await cancel(one, attackerAddress(2)), true, "a third one's");
		}
		if (second === "out") {
			for (const one of all) await assertUsers(one, fallback);
			await world.recovers();
		}
		// What only the fallback has stays there while that is well.
		if (second !== "well") await world.fails("fallback");
		for (const one of all) {
			await assertStage(one, "BROADCAST");
			await until(`${one.name} is on its user's path`, async () => {
				return !(await relay.client.status(one.hash)).fastMode;
			});
			await assertUsers(one, relay);
			await assertUsers(one, fallback);
		}
		if (second !== "well") await world.recovers("fallback");
		await system.delivered(all.map(({ raw }) => raw));
		for (const one of all) {
			if (one.end === "both cancel") assert.equal(await cancel(one, HONEST), true);
			if (one.end === "the sender signs") {
				const again = await ask("eth_sendRawTransaction", [one.raw], callAt("/fast", STRANGER));
				assert.equal(again.result, one.hash, "he brings them once more");
				assert.equal(await cancel(one, HONEST, one.by.keyHex), true);
			}
		}
		const mined = all.filter(({ end }) => end === "mined");
		const cancelled = all.filter(({ end }) => end !== "mined");
		for (const one of cancelled) await assertStage(one, "CANCELLED");
		await until("no builder has what is cancelled", () =>
			cancelled.every(({ hash }) => system.builder.liveOrders(hash).length === 0),
		);
		await mineAll(system, mined);
		await system.nextBlock(relay);
		for (const one of mined) await assertStage(one, "INCLUDED");
		for (const one of cancelled) await assertStage(one, "CANCELLED");
	});
}
