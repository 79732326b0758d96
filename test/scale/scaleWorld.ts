// The common parts of the tests of several relays: a real chain whose builder builds a block in
// each slot, a cluster on one PostgreSQL, and a builder's record that shows which process sent
// what.

import { pause, systemClock } from "../../shared/clock.ts";
import { type DevBuilder, startDevBuilder } from "../devnet/devBuilder.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { EMITTER, PAYER } from "../support/biddingFixture.ts";
import { EMITS, PAYS_COINBASE } from "../support/contracts.ts";
import { type TestAccount, testAccount } from "../support/txFactory.ts";
import { Cluster } from "./cluster.ts";

export interface ScaleWorldOptions {
	readonly relays: number;
	readonly boosts: number;
	/** Users' accounts with money. */
	readonly accounts: number;
	/** Whether blocks are built by the test alone. Default: one in each slot. */
	readonly manual?: boolean;
}

/** A call to the builder. */
export interface BuilderCall {
	/** When it came, in Unix ms. */
	readonly at: number;
	/** The process that sent it. */
	readonly process: string;
	readonly method: string;
	/** Its params as text. */
	readonly text: string;
}

export interface ScaleWorld {
	readonly chain: DevChain;
	readonly builder: DevBuilder;
	readonly cluster: Cluster;
	/** Searchers' accounts with money. */
	readonly bidders: readonly TestAccount[];
	/** When the block with a transaction was there, in Unix ms, by its hash. */
	readonly minedAt: ReadonlyMap<string, number>;
	/** One with money that nobody else has; null where there are no more. */
	account(): TestAccount | null;
	/** The builder's calls so far. */
	calls(): readonly BuilderCall[];
	stop(): Promise<void>;
}

/** Longer than a machine that is busy with all of this needs for a block. */
const SLOT_SECONDS = 2;
/** How often the blocks are looked at. */
const NOTE_MS = 50;
const BIDDERS = 24;
const FIRST_ACCOUNT = 3_000_000;
const FIRST_BIDDER = 2_990_000;
/** anvil mixes up longer batches. */
const CHAIN_BATCH = 16;
const ETHER = 10n ** 18n;
const BOOST_SECRET = "boosts and relays of one cluster";
/** A host would wait longer; here a process that drains is to be back soon. */
const DRAIN_SECONDS = "2";
const COMMON = { BOOST_SECRET, TRUST_PROXY: "1", RATE_LIMIT_RPS: "0", TX_TTL_BLOCKS: "1000", DRAIN_SECONDS };

/** Starts it all; the caller stops it. */
export async function startScaleWorld(options: ScaleWorldOptions): Promise<ScaleWorld> {
	const chain = await startDevChain({ slotSeconds: SLOT_SECONDS });
	for (const params of [
		[EMITTER, EMITS],
		[PAYER, PAYS_COINBASE],
	]) {
		await chain.rpc("anvil_setCode", params);
	}
	const bidders = await funded(chain, FIRST_BIDDER, BIDDERS);
	const accounts = [...(await funded(chain, FIRST_ACCOUNT, options.accounts))];
	await chain.rpc("evm_mine", []);
	const builder = await startDevBuilder({
		...{ chain, slotSeconds: SLOT_SECONDS, recordLimit: 1_000_000 },
		manual: options.manual ?? false,
	});
	const common = { ...COMMON, ETH_RPC_URL: chain.url, SLOT_SECONDS: String(SLOT_SECONDS) };
	const cluster = await Cluster.start({
		...{ relays: options.relays, boosts: options.boosts },
		relayEnv: { ...common, HEAD_POLL_MS: "100", MAX_HEAD_AGE_S: "86400" },
		builders: (process) => JSON.stringify([{ name: "dev", url: `${builder.url}/${process}` }]),
		boostEnv: {
			...common,
			FALLBACK_URL: "none",
			...{ REQUEST_BUDGET_MS: "3000", PROBE_INTERVAL_MS: "300", PROBE_TIMEOUT_MS: "1000" },
			...{ BREAKER_HOLD_MS: "200", BREAKER_HOLD_MAX_MS: "800" },
		},
	});
	const minedAt = new Map<string, number>();
	let known = 0;
	const note = (): void => {
		const blocks = builder.blocks();
		for (; known < blocks.length; known++)
			for (const hash of blocks[known]?.transactions ?? []) minedAt.set(hash, systemClock.now());
	};
	let isOver = false;
	const noting = (async () => {
		while (!isOver) {
			note();
			await pause(systemClock, NOTE_MS);
		}
	})();
	return {
		...{ chain, builder, cluster, bidders, minedAt },
		account: () => accounts.pop() ?? null,
		calls: () =>
			builder.requests().map(({ at, path, method, params }) => ({
				...{ at, method, process: path.slice(1), text: JSON.stringify(params) },
			})),
		async stop() {
			isOver = true;
			await noting;
			await cluster.stop();
			await builder.stop();
			await chain.stop();
		},
	};
}

async function funded(chain: DevChain, first: number, count: number): Promise<readonly TestAccount[]> {
	const made = Array.from({ length: count }, (_, i) => testAccount(first + i));
	for (let i = 0; i < count; i += CHAIN_BATCH) await chain.fund(made.slice(i, i + CHAIN_BATCH), 100n * ETHER);
	return made;
}
