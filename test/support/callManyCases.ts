// Generates random cases of eth_callMany from a seed: single calls, and bundles of signed
// transactions. It does not know the expected answers: the tests get them by mining the same on a
// real chain.

import { BLOCK_GAS, SLOT_SECONDS } from "./callManyFixture.ts";
import type { RealBlock } from "./callManyReal.ts";
import { HISTORY_CONTRACT, INIT_CODES, PLACES, REVERT_DATA, word } from "./contracts.ts";
import type { SeededRandom } from "./seededRandom.ts";
import { ETHER, GWEI } from "./simulationFixture.ts";
import { rawTransaction, type TestAccount, type TxOptions, testAccount } from "./txFactory.ts";

/** Accounts that delegate to a contract (EIP-7702). */
const DELEGATING: readonly TestAccount[] = [testAccount(900), testAccount(901)];

/** A call, without its sender and fees. */
interface Deed {
	/** Null creates a contract. */
	readonly to: string | null;
	readonly data: string;
	readonly value: bigint;
	readonly gas: bigint;
}

const WEIGHTS = {
	count: 4,
	store: 4,
	transfer: 3,
	forward: 3,
	revert: 3,
	create: 4,
	factory: 2,
	surroundings: 3,
	echo: 1,
	destroy: 2,
	history: 1,
	codeOf: 1,
	starve: 1,
	halt: 1,
} as const;

/** Draws a call of any kind; `block` is the number of a block whose hash the call may read. */
export function drawDeed(random: SeededRandom, others: readonly string[], block: number): Deed {
	const gas = 600_000n + BigInt(random.below(9)) * 100_000n;
	const value = random.oneIn(3) ? BigInt(1 + random.below(1000)) : 0n;
	const deed = (to: string | null, data = "0x", wei = 0n): Deed => ({ to, data, value: wei, gas });
	const other = random.pick(others);
	switch (random.weighted(WEIGHTS)) {
		case "count":
			return deed(PLACES.counter);
		case "store":
			// Few slots and values, so that calls often meet and clear what earlier ones stored.
			return deed(PLACES.store, `0x${word(random.below(2))}${word(random.below(3))}`);
		case "transfer":
			return deed(other, "0x", value + BigInt(random.below(2)) * (ETHER / 10n));
		case "forward":
			return deed(PLACES.forward, `0x${word(random.oneIn(2) ? PLACES.counter : other)}`, value);
		case "revert":
			return deed(PLACES.revert, random.pick(REVERT_DATA), value);
		case "create":
			return deed(null, random.pick(INIT_CODES), value);
		case "factory":
			return deed(PLACES.factory, random.pick(INIT_CODES), value);
		case "surroundings":
			return deed(PLACES.surroundings, "0x", value);
		case "echo":
			return deed(PLACES.echo, `0x${"5a".repeat(random.below(70))}`);
		case "destroy":
			return deed(PLACES.destroy, "0x", value);
		case "history":
			return deed(random.oneIn(2) ? HISTORY_CONTRACT : PLACES.hashOf, `0x${word(block)}`);
		case "codeOf":
			return deed(PLACES.codeOf, `0x${word(other)}`);
		case "starve":
			return { ...deed(random.pick([PLACES.loop, PLACES.store])), gas: 22_000n + BigInt(random.below(3000)) };
		case "halt":
			return deed(PLACES.invalid, "0x", value);
	}
}

/** An account with so few wei at the start that some of its transactions can't pay. */
interface PoorAccount {
	readonly account: TestAccount;
	readonly balance: bigint;
}

/** A bundle of signed transactions. */
interface SignedBundle {
	readonly txs: readonly string[];
	/** Sender and nonce of each. */
	readonly keys: readonly string[];
	readonly poor: readonly PoorAccount[];
}

/** A few transactions of several senders; some of them are invalid, or valid only after others. */
export function drawSignedBundle(
	random: SeededRandom,
	rich: readonly TestAccount[],
	nonces: ReadonlyMap<string, number>,
	baseFee: bigint,
	head: number,
): SignedBundle {
	const poor = [0, 1].map((i) => ({
		account: testAccount(1000 + random.below(1_000_000) * 2 + i),
		balance: ETHER / 1000n + BigInt(random.below(1000)),
	}));
	const senders = [...rich.slice(0, 3), ...poor.map(({ account }) => account)];
	const others = [...senders, ...DELEGATING].map(({ address }) => address);
	const next = new Map(nonces);
	const drawn = Array.from({ length: 1 + random.below(6) }, () => {
		const by = random.pick(senders);
		const nonce = next.get(by.address) ?? 0;
		const deed = drawDeed(random, others, head);
		const flaw = random.oneIn(6) ? random.pick(FLAWS) : null;
		const plain = { ...optionsOf(random, deed, baseFee), by, nonce };
		const delegates = plain.type === 2 && random.oneIn(4);
		const options = spoiled(flaw, delegates ? delegating(random, plain) : plain, baseFee);
		// A poor sender's transaction may be left out, so its next one gets either nonce.
		if (flaw === null && (by.address in richSet(rich) || random.oneIn(2))) next.set(by.address, nonce + 1);
		const key = `${by.address} ${options.nonce}`;
		return { raw: `0x${rawTransaction(options).toString("hex")}`, key };
	});
	return { txs: drawn.map(({ raw }) => raw), keys: drawn.map(({ key }) => key), poor };
}

function richSet(rich: readonly TestAccount[]): Readonly<Record<string, true>> {
	return Object.fromEntries(rich.map(({ address }) => [address, true]));
}

function optionsOf(random: SeededRandom, deed: Deed, baseFee: bigint): TxOptions {
	const { to, data, value, gas } = deed;
	const tip = BigInt(random.below(3)) * (GWEI / 10n);
	const price = baseFee + tip + BigInt(random.below(2)) * GWEI;
	const common = { to, data, value, gasLimit: gas };
	const type = random.pick([0, 1, 2, 2] as const);
	if (type !== 2) return { ...common, type, gasPrice: price };
	return { ...common, type, maxFeePerGas: price, maxPriorityFeePerGas: tip };
}

/**
 * A call of an account together with an authorization (EIP-7702) that makes the account count its
 * calls, or ends that. The account sends nothing itself, since the chain's pool would not see that
 * the authorization used its nonce.
 */
function delegating(random: SeededRandom, options: TxOptions): TxOptions {
	const by = random.pick(DELEGATING);
	const address = random.pick([PLACES.counter, PLACES.counter, `0x${"0".repeat(40)}`]);
	const nonce = BigInt(random.below(3));
	return { ...options, type: 4, to: by.address, authorizations: [{ by, address, nonce }] };
}

const FLAWS = ["gap", "old", "chain", "cheap", "gas", "value", "wide"] as const;

/** The options with `flaw`, which makes the transaction invalid. */
function spoiled(flaw: (typeof FLAWS)[number] | null, options: TxOptions, baseFee: bigint): TxOptions {
	const nonce = Number(options.nonce ?? 0);
	switch (flaw) {
		case null:
			return options;
		case "gap":
			return { ...options, nonce: nonce + 20 };
		case "old":
			return nonce === 0 ? { ...options, chainId: 5n } : { ...options, nonce: nonce - 1 };
		case "chain":
			return { ...options, chainId: 1n };
		case "cheap": {
			const price = baseFee - 1n;
			return options.gasPrice === undefined
				? { ...options, maxFeePerGas: price, maxPriorityFeePerGas: 0n }
				: { ...options, gasPrice: price };
		}
		case "gas":
			return { ...options, gasLimit: 20_999n };
		case "value":
			return { ...options, value: 100_000n * ETHER };
		case "wide":
			return { ...options, gasLimit: 30_000_001n };
	}
}

/** Bundles as parameters of the method, and the same as blocks to be mined. */
interface CallCase {
	/** The method's first parameter. */
	readonly bundles: readonly object[];
	/**
	 * The same, to be mined for real; the first one is mined in the base block itself, or after it.
	 */
	readonly blocks: readonly RealBlock[];
	/** The number of calls in each bundle. */
	readonly counts: readonly number[];
	/** Whether the gas of each block's calls fits into the block together. */
	readonly fits: boolean;
}

/** The block that the calls run in. */
interface CaseBlock {
	readonly number: number;
	readonly timestamp: number;
	/** Wei per gas. */
	readonly baseFee: bigint;
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
/**
 * The gas of a real call whose simulated one names none; enough for all calls but those that are
 * meant to run out.
 */
const PLENTY = 5_000_000n;

/**
 * Draws one to three bundles. If the block has a base fee every call pays it; else calls are free.
 */
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
		if (random.oneIn(4)) {
			// Only later than the block, so that it can be mined.
			const later = { number: block.number + 1 + random.below(3), timestamp: block.timestamp + 50 };
			block = { ...block, ...later };
			blockOverride.blockNumber = hex(later.number);
			blockOverride.timestamp = random.oneIn(2) ? hex(later.timestamp) : later.timestamp;
		}
		// Calls in the block itself run after its own transactions, so they can't have other block
		// values.
		const isApart = block.number > within.number;
		if (isApart && random.oneIn(3)) {
			const coinbase = testAccount(500 + random.below(3)).address;
			block = { ...block, coinbase };
			blockOverride.coinbase = coinbase;
		}
		if (isApart && random.oneIn(3)) {
			block = { ...block, gasLimit: 20_000_000 };
			blockOverride.gasLimit = hex(20_000_000);
		}
		if (isApart && random.oneIn(3) && block.baseFee > 0n) {
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
	// A new account without ether for each call: what it tries to pay fails.
	const poor = testAccount(2_000_000 + random.below(1_000_000)).address;
	const free = baseFee === 0n;
	const from = free && random.oneIn(4) ? random.pick([ZERO_ADDRESS, poor]) : random.pick(senders);
	const value =
		from === ZERO_ADDRESS ? 0n : from === poor && random.oneIn(2) ? deed.value + ETHER : deed.value;
	const price = feesOf(random, baseFee);
	const isPlenty = free && deed.gas >= 600_000n && random.oneIn(3);
	const asked: Record<string, unknown> = {
		...(from === ZERO_ADDRESS && random.oneIn(2) ? {} : { from }),
		...(deed.to === null ? (random.oneIn(2) ? {} : { to: null }) : { to: deed.to }),
		...(isPlenty ? {} : { gas: hex(deed.gas) }),
		...(value === 0n && random.oneIn(2) ? {} : { value: hex(value) }),
		...(deed.data === "0x" && random.oneIn(2) ? {} : { [random.pick(["data", "input"])]: deed.data }),
		// If gas costs something the balance shows how much was bought, so the call names it.
		...(free && random.oneIn(2) ? {} : price),
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
	if (random.oneIn(2)) return { gasPrice: hex(baseFee + tip) };
	return { maxFeePerGas: hex(baseFee + tip + GWEI), maxPriorityFeePerGas: hex(tip) };
}

function hex(value: number | bigint): string {
	return `0x${value.toString(16)}`;
}
