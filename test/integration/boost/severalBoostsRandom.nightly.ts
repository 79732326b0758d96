// Wallets use two boost instances on one database at random, while the relay fails and recovers and
// one instance is replaced: nobody sends a cancelled transaction after the answer, and every other
// acknowledged one is mined. boostParts.test.ts tests each case.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { newDatabase } from "../../support/engine.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { SeededRandom } from "../../support/seededRandom.ts";
import { mineAll } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const WALLETS = 16;
const STEPS = 20;
/** Least due and cancelled transactions of each wallet, so that the test shows something. */
const LEAST = { due: 3, cancelled: 1 };
/** Requests that may be refused. */
const MOST_REFUSED = 3;
/** One step in so many cancels, replaces, or sends the last bytes again. */
const CANCELS = 4;
const REPLACES = 6;
const REPEATS = 5;

let fixture: BoostFixture;
let boosts: BoostClient[];
before(async () => {
	fixture = await startBoostFixture({ boost: { DATABASE_URL: await newDatabase() } });
	boosts = [fixture.boost, await fixture.startBoost()];
});
after(() => fixture?.stop());

/** The outcome of one wallet's transactions. */
interface Wallet {
	readonly by: Actor;
	/** The last acknowledged one of each nonce. */
	readonly last: Map<number, Signed>;
	/** When a cancel of it was answered, in monotonic ms. */
	readonly cancelled: Map<Signed, number>;
	refused: number;
}

test("sends nothing after its cancel, whichever boost instances were asked, and all else is mined", async () => {
	const random = new SeededRandom(34);
	const wallets: Wallet[] = [];
	for (let i = 0; i < WALLETS; i += 1)
		wallets.push({ by: await fixture.users.actor(), last: new Map(), cancelled: new Map(), refused: 0 });
	await fixture.users.passBlock();
	let isOver = false;
	const flapping = (async () => {
		while (!isOver) {
			await fixture.fails();
			await until("it was down for a while", passed(400));
			await fixture.recovers();
			await until("it was up for a while", passed(600));
		}
	})();
	const replacing = (async () => {
		await until("there is traffic", () => wallets.reduce((sum, { last }) => sum + last.size, 0) > WALLETS);
		boosts.push(await fixture.startBoost());
		const [replaced] = boosts.splice(1, 1) as [BoostClient];
		await until("its last request is answered", () => (asking.get(replaced) ?? 0) === 0);
		await replaced.stop();
	})();
	await Promise.all(wallets.map((wallet) => live(wallet, random)));
	await replacing;
	isOver = true;
	await flapping;

	const due = wallets.flatMap(({ last }) => [...last.values()]);
	const ended = wallets.flatMap(({ cancelled }) => [...cancelled]);
	assert.ok(due.length > WALLETS * LEAST.due, `${due.length} are due`);
	assert.ok(ended.length > WALLETS * LEAST.cancelled, `${ended.length} were cancelled`);
	await mineAll(fixture.system, due);
	for (const [{ raw, hash }, at] of ended) {
		for (const [name, wire] of Object.entries(fixture.wires)) {
			const late = wire
				.requests()
				.filter((request) => request.at > at && request.calls.some(({ params }) => params?.[0] === raw));
			assert.equal(
				late.length,
				0,
				`${hash} went to the ${name} ${(late[0]?.at ?? 0) - at} ms after its cancel`,
			);
		}
	}
	const refused = wallets.reduce((sum, one) => sum + one.refused, 0);
	assert.ok(refused <= MOST_REFUSED, `${refused} requests were refused`);
});

async function live(wallet: Wallet, random: SeededRandom): Promise<void> {
	const { by, last, cancelled } = wallet;
	let next = 0;
	for (let step = 0; step < STEPS; step += 1) {
		const newest = last.get(next - 1);
		if (newest !== undefined && random.oneIn(CANCELS)) {
			const answer = await ask(random, "eth_cancelTransaction", newest.hash);
			const isUnreached = answer.error?.message.includes("cancels it there as soon as") === true;
			if (answer.result !== true && !isUnreached) {
				wallet.refused += 1;
				continue;
			}
			cancelled.set(newest, systemClock.monotonic());
			last.delete(next - 1);
			next -= 1;
		} else if (newest !== undefined && random.oneIn(REPEATS)) await submit(wallet, newest, random);
		else if (newest !== undefined && random.oneIn(REPLACES)) {
			const higher = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI, value: step + 100 };
			const tx = by.sign({ nonce: next - 1, ...higher });
			if (await submit(wallet, tx, random)) last.set(next - 1, tx);
		} else {
			const tx = by.sign({ nonce: next, value: step });
			if (!(await submit(wallet, tx, random))) continue;
			last.set(next, tx);
			next += 1;
		}
	}
}

/** Whether it was acknowledged. */
async function submit(wallet: Wallet, { raw, hash }: Signed, random: SeededRandom): Promise<boolean> {
	const answer = await ask(random, "eth_sendRawTransaction", raw);
	if (answer.result === hash) return true;
	// A wallet may bid the same again for the nonce that it has replaced.
	if (answer.error?.message.includes("underpriced") !== true) wallet.refused += 1;
	return false;
}

/** Requests to each boost instance that are not answered yet. */
const asking = new Map<BoostClient, number>();

/** Asks a random boost instance. */
async function ask(random: SeededRandom, method: string, param: string): Promise<WireAnswer> {
	const boost = random.pick(boosts);
	asking.set(boost, (asking.get(boost) ?? 0) + 1);
	try {
		return (await boost.call(method, [param])).json as WireAnswer;
	} finally {
		asking.set(boost, (asking.get(boost) ?? 1) - 1);
	}
}

function passed(ms: number): () => boolean {
	const begun = systemClock.monotonic();
	return () => systemClock.monotonic() - begun > ms;
}
