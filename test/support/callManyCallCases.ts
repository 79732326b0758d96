// Generates bundles of unsigned calls for eth_callMany, with the blocks in which the same calls are really made. It
// does not know the right answers.

import { DELEGATING, drawDeed } from "./callManyCases.ts";
import { BLOCK_GAS, SLOT_SECONDS } from "./callManyFixture.ts";
import type { RealBlock } from "./callManyReal.ts";
import type { SeededRandom } from "./seededRandom.ts";
import { ETHER, GWEI } from "./simulationFixture.ts";
import { type TestAccount, testAccount } from "./txFactory.ts";

/** Bundles, and what they come to. */
export interface CallCase {
	/** The method's first parameter. */
	readonly bundles: readonly object[];
	/** The same, to be sent for real; the first one is in the block itself, or behind it. */
	readonly blocks: readonly RealBlock[];
	/** How many calls each bundle has. */
	readonly counts: readonly number[];
	/** Whether the gas of each block's calls fits into the block together. */
	readonly fits: boolean;
}

/** The block that the calls run in. */
export interface CaseBlock {
	readonly number: number;
	readonly timestamp: number;
	/** Wei per gas. */
	readonly baseFee: bigint;
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
/** What a real call gets where the simulated one says nothing; enough for everything that is not drawn to starve. */
const PLENTY = 5_000_000n;

/** One to three bundles; with a base fee every call pays it, without one calls are free. */
export function drawCallCase(
	random: SeededRandom,
	rich: readonly TestAccount[],
	within: CaseBlock,
): CallCase {
	const bundles: object[] = [];
	const blocks: RealBlock[] = [];
	let fits = true;
	let block: Omit<RealBlock, "sends"> = within;
	for (let i = 0; i < 1 + random.below(3); i++) {
		if (i > 0) {
			block = { ...block, number: block.number + 1, timestamp: block.timestamp + SLOT_SECONDS };
		}
		const blockOverride: Record<string, string | number> = {};
		if (random.once(4)) {
			// Only ever later: it is to be mined.
			const later = { number: block.number + 1 + random.below(3), timestamp: block.timestamp + 50 };
			block = { ...block, ...later };
			blockOverride.blockNumber = hex(later.number);
			blockOverride.timestamp = random.once(2) ? hex(later.timestamp) : later.timestamp;
		}
		// What the block's own transactions ran with can't be another's for the calls behind them.
		const isApart = block.number > within.number;
		if (isApart && random.once(3)) {
			const coinbase = testAccount(500 + random.below(3)).address;
			block = { ...block, coinbase };
			blockOverride.coinbase = coinbase;
		}
		if (isApart && random.once(3)) {
			block = { ...block, gasLimit: 20_000_000 };
			blockOverride.gasLimit = hex(20_000_000);
		}
		if (isApart && random.once(3) && block.baseFee > 0n) {
			block = { ...block, baseFee: block.baseFee + GWEI };
			blockOverride.baseFee = hex(block.baseFee);
		}
		const calls = Array.from({ length: random.below(5) }, () =>
			drawCall(random, rich, block, within.number - 1),
		);
		const wanted = calls.reduce((sum, { asked }) => sum + Number(asked.gas ?? BLOCK_GAS), 0);
		fits &&= wanted <= (block.gasLimit ?? BLOCK_GAS);
		bundles.push({
			transactions: calls.map(({ asked }) => asked),
			...(Object.keys(blockOverride).length === 0 ? {} : { blockOverride }),
		});
		blocks.push({ ...block, sends: calls.map(({ sent }) => sent) });
	}
	return { bundles, blocks, counts: blocks.map(({ sends }) => sends.length), fits };
}

interface DrawnCall {
	readonly asked: Record<string, unknown>;
	readonly sent: Record<string, unknown>;
}

function drawCall(
	random: SeededRandom,
	rich: readonly TestAccount[],
	{ baseFee }: Omit<RealBlock, "sends">,
	parent: number,
): DrawnCall {
	const senders = rich.slice(0, 3).map(({ address }) => address);
	const deed = drawDeed(
		random,
		[...senders, ...DELEGATING.map(({ address }) => address), ZERO_ADDRESS],
		parent,
	);
	// One that has nothing is never heard of again: what it wants to send can't be sent.
	const poor = testAccount(2_000_000 + random.below(1_000_000)).address;
	const free = baseFee === 0n;
	const from = free && random.once(4) ? random.pick([ZERO_ADDRESS, poor]) : random.pick(senders);
	const value =
		from === ZERO_ADDRESS ? 0n : from === poor && random.once(2) ? deed.value + ETHER : deed.value;
	const price = feesOf(random, baseFee);
	const isPlenty = free && deed.gas >= 600_000n && random.once(3);
	const asked: Record<string, unknown> = {
		...(from === ZERO_ADDRESS && random.once(2) ? {} : { from }),
		...(deed.to === null ? (random.once(2) ? {} : { to: null }) : { to: deed.to }),
		...(isPlenty ? {} : { gas: hex(deed.gas) }),
		...(value === 0n && random.once(2) ? {} : { value: hex(value) }),
		...(deed.data === "0x" && random.once(2) ? {} : { [random.pick(["data", "input"])]: deed.data }),
		// Where gas costs something, how much is bought is seen in the balance: then it is said.
		...(free && random.once(2) ? {} : price),
	};
	const sent = {
		from,
		...(deed.to === null ? {} : { to: deed.to }),
		gas: hex(isPlenty ? PLENTY : deed.gas),
		value: hex(value),
		input: deed.data,
		...price,
	};
	return { asked, sent };
}

function feesOf(random: SeededRandom, baseFee: bigint): Record<string, string> {
	if (baseFee === 0n) return { gasPrice: "0x0" };
	const tip = BigInt(random.below(3)) * (GWEI / 10n);
	if (random.once(2)) return { gasPrice: hex(baseFee + tip) };
	return { maxFeePerGas: hex(baseFee + tip + GWEI), maxPriorityFeePerGas: hex(tip) };
}

function hex(value: number | bigint): string {
	return `0x${value.toString(16)}`;
}
