// Suspends a boost instance at random moments, for milliseconds to seconds, while clients submit
// and cancel over a line on which requests overtake each other. Nothing that was cancelled with
// `true` may go to a builder afterwards.

import { pause, systemClock } from "../../shared/clock.ts";
import { BOOST_SECRET, boostEnv } from "../faults/boostHere.ts";
import { startFaultyWire } from "../faults/faultyWire.ts";
import { startRelayHere, startWorld } from "../faults/world.ts";
import { newDatabase } from "../support/engine.ts";
import { RAW, RESULT, startPlainBuilder } from "../support/plainBuilder.ts";
import { type BoostProcess, startBoostProcess } from "../support/processes.ts";
import { RelayClient } from "../support/relayClient.ts";
import { SeededRandom } from "../support/seededRandom.ts";
import { startTcpProxy } from "../support/tcpProxy.ts";
import { signedTransaction, type TestAccount } from "../support/txFactory.ts";

export interface SuspensionsOptions {
	readonly seed: number;
	readonly suspensions: number;
	/** One has its journal alone, two share a database. */
	readonly boosts: 1 | 2;
}

/** How it went. */
export interface Suspensions {
	/** Cancels that were answered with true, and with an error. */
	readonly cancelled: number;
	readonly refused: number;
	/** Hashes of transactions that a builder received after a true. */
	readonly sent: readonly string[];
	/** Half-written requests that came to the fallback after a true, as SECURITY.md says. */
	readonly toFallback: number;
}

/** Transactions of one suspension. */
const EACH = 4;
const BLOCK_MS = 500;
/** Submissions, suspensions and cancels begin within this time, in ms. */
const SPREAD_MS = 30;
const LONGEST_MS = 2_000;
/** One in so many takes longer than a lease, if there are two boost instances. */
const OVERLONG = 40;
const OVERLONG_MS = 13_000;
/** The line holds back one in so many pieces of a connection, for so long at most in ms. */
const HELD = 3;
const HELD_MS = 600;
/** Clients repeat a cancel that was an error, so often and after so many ms. */
const TRIES = 4;
const AGAIN_MS = 500;
/** A request that was written before the answer may be read here so much later, in ms. */
const READ_MS = 100;

/** One transaction, and when its cancel was answered with true; null: it was not. */
interface Tried {
	readonly hash: string;
	readonly raw: string;
	cancelledAt: number | null;
}

/** Runs all suspensions, one after another. */
export async function suspendOften(options: SuspensionsOptions): Promise<Suspensions> {
	const random = new SeededRandom(options.seed);
	const accounts = options.suspensions * EACH;
	const world = await startWorld({ blockMs: BLOCK_MS, accounts, builder: "plain" });
	const builder = await startPlainBuilder();
	/** When a builder received bytes last. */
	const received = new Map<string, number>();
	builder.answerWith((body) => {
		for (const raw of body.match(RAW) ?? []) received.set(raw, systemClock.monotonic());
		return RESULT;
	});
	const database = options.boosts === 2 ? { DATABASE_URL: await newDatabase() } : {};
	const builders = JSON.stringify([{ name: "plain", url: builder.url }]);
	const place = { DATA_DIR: world.folder("relay"), BOOST_SECRET };
	const relay = await startRelayHere({ ...world.relayEnv, ...place, BUILDERS: builders });
	const delayMs = () => (random.oneIn(HELD) ? random.below(HELD_MS) : 0);
	const line = await startTcpProxy(relay.port, { delayMs });
	const fallbackWire = await startFaultyWire(world.fallbackUrl);
	const urls = { relayUrl: `http://127.0.0.1:${line.port}`, fallbackUrl: fallbackWire.url };
	const env = {
		...boostEnv({ ...urls, folder: world.folder("boost") }),
		...{ ETH_RPC_URL: world.chain.url, LOG_LEVEL: "info", ...database },
	};
	const ended = new Set<BoostProcess>();
	const start = async (): Promise<BoostProcess> => {
		const boost = await startBoostProcess({ env });
		void boost.exited.then(() => ended.add(boost));
		return boost;
	};
	const boosts: BoostProcess[] = [];
	const tried: Tried[] = [];
	let refused = 0;
	try {
		for (let i = 0; i < options.boosts; i += 1) boosts.push(await start());
		for (let i = 0; i < options.suspensions; i += 1) await suspendOnce();
		// A transaction that is still pending is sent for each block, so it would be seen by now.
		await pause(systemClock, 4 * BLOCK_MS);
		const late = (raw: string, at: number) => (received.get(raw) ?? 0) > at + READ_MS;
		const cancelled = tried.filter(({ cancelledAt }) => cancelledAt !== null);
		const sent = cancelled.filter(({ raw, cancelledAt }) => late(raw, cancelledAt ?? 0));
		const toFallback = fallbackWire.requests().filter(({ at, calls }) => {
			const one = cancelled.find(({ raw }) => calls.some(({ params }) => params?.[0] === raw));
			return one !== undefined && at > (one.cancelledAt ?? 0) + READ_MS;
		});
		return {
			...{ cancelled: cancelled.length, refused, toFallback: toFallback.length },
			sent: sent.map(({ hash }) => hash),
		};
	} finally {
		for (const one of boosts) await one.kill();
		await line.stop();
		await fallbackWire.stop();
		await relay.stop();
		await builder.stop();
		await world.stop();
	}

	async function suspendOnce(): Promise<void> {
		// One whose lease ran out has ended.
		for (const [at, one] of boosts.entries()) if (ended.has(one)) boosts[at] = await start();
		const at = random.below(boosts.length);
		const suspended = boosts[at] as BoostProcess;
		const isOverlong = boosts.length > 1 && random.oneIn(OVERLONG);
		const ms = isOverlong ? OVERLONG_MS : 2 ** ((random.below(1_000) / 1_000) * Math.log2(LONGEST_MS));
		const work = world.accounts(EACH).map((by) => submitAndCancel(by, suspended, ms));
		await pause(systemClock, random.below(SPREAD_MS));
		suspended.signal("SIGSTOP");
		await pause(systemClock, ms);
		suspended.signal("SIGCONT");
		await Promise.all(work);
	}

	async function submitAndCancel(by: TestAccount, to: BoostProcess, ms: number): Promise<void> {
		const tx = signedTransaction({ gasLimit: 21_000, value: random.below(1_000_000), by, nonce: 0 });
		const raw = `0x${Buffer.from(tx.raw).toString("hex")}`;
		const one: Tried = { hash: tx.hash, raw, cancelledAt: null };
		tried.push(one);
		const canceller = random.pick(boosts);
		const [sendMs, cancelMs] = [random.below(SPREAD_MS), random.below(Math.ceil(ms) + 2 * SPREAD_MS)];
		const client = new RelayClient(to.url);
		const sending = pause(systemClock, sendMs).then(() => client.send(raw, "/noreverts").catch(() => null));
		await pause(systemClock, sendMs + cancelMs);
		const until = systemClock.monotonic() + ms + TRIES * AGAIN_MS;
		while (one.cancelledAt === null && systemClock.monotonic() < until) {
			const asked = new RelayClient(canceller.url).ask("eth_cancelTransaction", [tx.hash], "/noreverts");
			const answer = await asked.catch(() => null);
			if (answer?.result === true) one.cancelledAt = systemClock.monotonic();
			else await pause(systemClock, AGAIN_MS);
		}
		if (one.cancelledAt === null) refused += 1;
		await sending;
	}
}
