// Somebody else brings a user's signed bytes, before or after the user, with the relay well, out or
// back. Each promise holds by itself: nobody redirects the refund, searchers see no more than any
// owner allows, nobody's cancel ends what another wants, and who comes once builders have it
// changes neither builders nor delivery.

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
const STILL_WANTED =
	"taken back for your address; another address that submitted it still wants it: sign the cancel with the sender's key, or replace it";

/** When the first and the second of the two come. */
const TIMES = {
	"with the relay well": ["well", "well"],
	"with the relay out": ["out", "out"],
	"the second with the relay out": ["well", "out"],
	"the second with the relay back": ["out", "back"],
} as const;

/** The order of stranger and user, the user's path, the recipients that they name, and the end. */
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

/** As the first one wants it delivered, wherever it is pending, and hidden as both want it. */
async function assertHolds(one: Brought, at: RelayProcess): Promise<void> {
	const { fastMode, shared, status, stage } = await at.client.status(one.hash);
	if (stage === undefined) return;
	assert.deepEqual(
		{ fastMode, shared, status },
		{ fastMode: one.isStrangerFirst, shared: false, status: "UNKNOWN" },
		`${one.name} at the ${at === world.relay ? "relay" : "fallback"}`,
	);
}

for (const [name, [first, second]] of Object.entries(TIMES)) {
	it(`${name}, a stranger gets neither refund nor cancel of what he brings`, async () => {
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
		// Then builders have it.
		if (first === "well") for (const one of all) await assertStage(one, "BROADCAST");
		if (first === "well" && second === "out") {
			await world.fails();
			for (const { name, hash } of all)
				await until(
					`the fallback has ${name}`,
					async () => (await fallback.client.stage(hash)) !== undefined,
				);
		}
		if (second === "back") await world.recovers();
		for (const one of all) await bring(one, !one.isStrangerFirst);
		for (const one of all) {
			assert.equal(await cancel(one, STRANGER), STILL_WANTED, "his own wish");
			assert.notEqual(await cancel(one, attackerAddress(2)), true, "a third one's");
		}
		if (second === "out") {
			for (const one of all) await assertHolds(one, fallback);
			await world.recovers();
		}
		// A transaction that only the fallback has stays there while the fallback is healthy.
		if (second !== "well") await world.fails("fallback");
		for (const one of all) {
			await assertStage(one, "BROADCAST");
			await assertHolds(one, relay);
			await assertHolds(one, fallback);
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
		for (const one of mined) {
			await assertStage(one, "INCLUDED");
			assert.equal((await relay.client.status(one.hash)).refundRecipient, null, one.name);
		}
		for (const one of cancelled) await assertStage(one, "CANCELLED");
	});
}

/** A funded account's transaction. */
async function fresh(count: number): Promise<readonly Omit<Brought, keyof Case>[]> {
	const all = Array.from({ length: count }, (_, i) => {
		const by = testAccount(accounts++);
		const raw = `0x${rawTransaction({ by }).toString("hex")}`;
		return { name: `transaction ${i}`, by, raw, hash: signedTransaction({ by }).hash };
	});
	await world.system.chain.fund(
		all.map(({ by }) => by),
		ETHER,
	);
	await world.system.nextBlock(world.relay);
	return all;
}

for (const out of [false, true]) {
	it(`with the relay ${out ? "out" : "well"}, a stranger who submits and cancels first ends nothing for its user`, async () => {
		const { system } = world;
		const [ofUser, control] = (await fresh(2)) as [Brought, Brought];
		if (out) await world.fails();
		const submit = async ({ raw }: Brought, from: string, query = "") => {
			const { result, error } = await ask("eth_sendRawTransaction", [raw], callAt(`/fast${query}`, from));
			return error?.message ?? result;
		};
		assert.equal(await submit(ofUser, STRANGER), ofUser.hash);
		assert.equal(await cancel(ofUser, STRANGER), true);
		// No dead hash: the user learns of it, and can have it anew.
		assert.match(
			String(await submit(ofUser, HONEST)),
			/^transaction was cancelled by another owner; add again=0x/,
		);
		assert.equal(await submit(control, HONEST), control.hash);
		const again = `?again=${ofUser.hash}`;
		assert.equal(await submit(ofUser, HONEST, again), ofUser.hash);
		assert.equal(await submit(ofUser, STRANGER, again), ofUser.hash);
		assert.equal(await cancel(ofUser, STRANGER), STILL_WANTED);
		if (out) await world.recovers();
		// Transactions that only the fallback has stay there while it is healthy. Those that it has
		// cancelled for boost come to the relay.
		if (out) await world.fails("fallback");
		for (const one of [ofUser, control]) await assertStage(one, "BROADCAST");
		if (out) await world.recovers("fallback");
		await system.delivered([ofUser.raw, control.raw]);
		await mineAll(system, [ofUser, control]);
		for (const one of [ofUser, control]) await assertStage(one, "INCLUDED");
	});
}

it("a signed body that is repeated with another path and recipient shows and redirects nothing", async () => {
	const { system, relay } = world;
	const [one, control] = (await fresh(2)) as [Brought, Brought];
	const submit = async ({ raw, by }: Brought, from: string, target: string) => {
		const call = { ...callAt(target, from), key: by.keyHex };
		assert.equal((await ask("eth_sendRawTransaction", [raw], call)).error, undefined);
	};
	for (const brought of [one, control]) await submit(brought, HONEST, `/fullprivacy?refundRecipient=${OWN}`);
	for (const target of [`/maxbackruns?refundRecipient=${THEIRS}`, `/fast?refundRecipient=${THEIRS}`])
		await submit(one, STRANGER, target);
	await system.delivered([one.raw, control.raw]);
	await mineAll(system, [one, control]);
	for (const brought of [one, control]) await assertStage(brought, "INCLUDED");
	const shown = async ({ hash }: Brought) => {
		const { fastMode, shared, refundRecipient } = await relay.client.status(hash);
		return { fastMode, shared, refundRecipient };
	};
	assert.deepEqual(await shown(one), { fastMode: false, shared: false, refundRecipient: null });
	assert.deepEqual(await shown(control), { fastMode: false, shared: false, refundRecipient: OWN });
});
