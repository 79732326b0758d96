// Learns what the node can simulate, by requests like those of simulations, and says it. Asked again at heads: soon while the
// node has not answered, or when it did not support what it was thought to be able to do, else from time to time, because another node
// may have come behind the same URL.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { type RpcCall, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import { MAX_BLOCKS_AHEAD } from "../domain/bundle.ts";
import type { Header } from "../domain/chain.ts";
import { readHeader } from "../domain/nodeJson.ts";
import {
	ENGINE_NAMES,
	type NodeAnswer,
	type Part,
	type RequestLimits,
	type SimulationNode,
} from "./engines/engine.ts";
import { onlyCall, onlyReturned, PROBE_ADDRESS, PROBE_CALLER, readHex } from "./engines/nodeObjects.ts";
import { simulateCall } from "./engines/simulateV1.ts";
import { traceFirst } from "./engines/traces.ts";
import { readAnswer, readTransportError } from "./engines/verdicts.ts";

/** Block overrides that nodes may ignore or reject without making results wrong. */
export type Dispensable = "prevRandao" | "beaconRoot";

export interface NodeAbilities extends RequestLimits {
	/** Whether its `eth_simulateV1` supports all that simulations need. */
	readonly simulates: boolean;
	/** Whether its `debug_traceCall` does, one transaction after another. Absent: not known. */
	readonly traces?: boolean | undefined;
	/** Block overrides that it rejects. */
	readonly without?: ReadonlySet<Dispensable>;
	/** Whether it simulates a block with its parent's timestamp, as there are where slots are short. Absent: no. */
	readonly sameTime?: boolean | undefined;
}

/** What the node can simulate, for people. */
export interface AbilitiesReport {
	/** The node method that runs transactions; null: none, or not known yet. */
	readonly method: (typeof ENGINE_NAMES)[number] | null;
	/** Gas limit for all transactions of one request together; null: none. */
	readonly gasCap: number | null;
	/** Farthest block above the head; null without {@link AbilitiesReport.method}. */
	readonly blocksAhead: number | null;
	/** Block overrides that it rejects or ignores. */
	readonly missing: readonly string[];
}

/** Deadline of a request, in ms. */
const ASK_MS = 5_000;
/** The default of geth and reth. */
const DEFAULT_GAS_CAP = 50_000_000n;
/** More than any cap. */
const MUCH_GAS = 2n ** 49n;
/** GAS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN; and the gas that it uses after it has read the gas left. */
const GAS_CODE = "0x5a5f5260205ff3";
const USED_AFTER = 13n;
/** Gas used before, where the node does not show it: a call costs 21,000 until Amsterdam. */
const USED_BEFORE = 21_002n;
/** Gas of a second call, which shows that. */
const LITTLE_GAS = 100_000n;
/** Returns TIMESTAMP, NUMBER, BASEFEE, GASLIMIT, COINBASE, PREVRANDAO and the value of slot 0, a word each. */
const SHOW_CODE = "0x425f52436020524860405245606052416080524460a0525f5460c05260e05ff3";
/** An unused address for that contract, and one for a fee recipient. */
const SHOWN = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b73";
const COINBASE = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b74";
const DRAWN = `0x${"5a".repeat(32)}`;
const GAS = 100_000n;

/** When the node is asked again, in ms after the last time: nothing can be simulated, or it was a surprise; it traces; it simulates. */
const SOON_MS = 10_000;
const TRACES_MS = 60_000;
const SIMULATES_MS = 600_000;
/** The same where something was not supported, while that is not believed yet. */
const AGAIN_MS = 2_000;
/**
 * A node that knows its head but fails to answer so many probes in a row can't simulate; and what it does not support in so many, it does no
 * longer: one such answer may pass.
 */
const MAX_FAULTS = 3;

/** What was learnt. */
interface Learnt {
	readonly version: string;
	readonly simulates: boolean;
	readonly traces: boolean;
	/** Null: the node does not say. */
	readonly gasCap: bigint | null;
	readonly maxBlocks: number | undefined;
	readonly maxBlockGas: bigint | undefined;
	readonly without: ReadonlySet<Dispensable>;
	readonly sameTime: boolean;
	readonly missing: readonly string[];
}

export interface AbilitiesDependencies {
	readonly node: SimulationNode;
	/** Only where slots are shorter than a second it is asked for blocks of one second. Default: they are not. */
	readonly slot?: SlotLength;
	readonly clock: Clock;
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

/** The abilities as far as they are known; until the node has answered it is asked for everything. */
export class LearntAbilities implements NodeAbilities {
	readonly #deps: AbilitiesDependencies;
	#learnt: Learnt | null = null;
	#faults = 0;
	#isAsking = false;
	/** Monotonic ms. */
	#askedAt = 0;
	#doubtedAt = -Infinity;
	#isDoubted = false;
	#said = "";

	constructor(dependencies: AbilitiesDependencies) {
		this.#deps = dependencies;
	}

	get simulates(): boolean {
		return this.#learnt?.simulates ?? true;
	}

	get traces(): boolean {
		return this.#learnt?.traces === true;
	}

	get gasCap(): bigint {
		return this.#learnt?.gasCap ?? DEFAULT_GAS_CAP;
	}

	get maxBlocks(): number | undefined {
		return this.#learnt?.maxBlocks;
	}

	get maxBlockGas(): bigint | undefined {
		return this.#learnt?.maxBlockGas;
	}

	get without(): ReadonlySet<Dispensable> {
		return this.#learnt?.without ?? new Set();
	}

	get sameTime(): boolean {
		return this.#learnt?.sameTime === true;
	}

	/** Whether it is known that the node can simulate one transaction behind another, which bids need. */
	get bidding(): boolean {
		return this.#learnt?.simulates === true;
	}

	/** For `/info`. */
	get report(): AbilitiesReport {
		const learnt = this.#learnt;
		const method = learnt?.simulates ? ENGINE_NAMES[0] : learnt?.traces ? ENGINE_NAMES[1] : null;
		if (learnt === null || method === null)
			return { method: null, gasCap: null, blocksAhead: null, missing: [] };
		return {
			method,
			gasCap: this.gasCap < MUCH_GAS ? Number(this.gasCap) : null,
			blocksAhead: learnt.maxBlocks === undefined ? MAX_BLOCKS_AHEAD : learnt.maxBlocks - 1,
			missing: learnt.missing,
		};
	}

	/** Asks the node now. Never throws. */
	async learn(): Promise<void> {
		if (this.#isAsking) return;
		this.#isAsking = true;
		this.#isDoubted = false;
		try {
			const mustEnd = this.#faults >= MAX_FAULTS - 1;
			const found = await learnAbilities(this.#deps, mustEnd);
			// A node that does not answer now is what it was.
			const known = this.#learnt;
			const isLoss = found.kind === "learnt" && known !== null && isLess(found, known);
			const isUnsure = found.kind === "fault" || (isLoss && !mustEnd);
			if (found.kind === "learnt" && !isUnsure) this.#learnt = found;
			this.#faults = isUnsure ? this.#faults + 1 : 0;
			this.#say();
		} finally {
			this.#askedAt = this.#deps.clock.monotonic();
			this.#isAsking = false;
		}
	}

	/** Called at each head: asks again if it is time. */
	headCame(): void {
		const { clock, background } = this.#deps;
		const isUnsure = this.#isDoubted || this.#faults > 0 || this.report.method === null;
		const afterMs = isUnsure ? SOON_MS : this.#learnt?.simulates ? SIMULATES_MS : TRACES_MS;
		if (this.#isAsking || clock.monotonic() - this.#askedAt < afterMs) return;
		background.run("abilities", () => this.learn());
	}

	/** The node did not support what it was thought to be able to do. */
	doubt(): void {
		const { clock, background } = this.#deps;
		this.#isDoubted = true;
		// It was not asked since, for nothing was missing: what it did not support before has passed.
		if (!this.#isAsking && clock.monotonic() - this.#askedAt > 2 * AGAIN_MS) this.#faults = 0;
		const afterMs = this.#faults > 0 ? AGAIN_MS : SOON_MS;
		if (this.#isAsking || clock.monotonic() - this.#doubtedAt < afterMs) return;
		this.#doubtedAt = clock.monotonic();
		background.run("abilities", () => this.learn());
	}

	/** Logs what is known, if that is new. */
	#say(): void {
		const { log } = this.#deps;
		const learnt = this.#learnt;
		const { report } = this;
		const version = learnt?.version ?? "unknown";
		const said = JSON.stringify([version, report]);
		if (said === this.#said) return;
		this.#said = said;
		const { method, gasCap, blocksAhead, missing } = report;
		const limits = {
			version,
			...(gasCap === null ? {} : { limit: gasCap }),
			...(blocksAhead === null ? {} : { count: blocksAhead }),
			...(missing.length === 0 ? {} : { reason: `without ${missing.join(", ")}` }),
		};
		if (learnt === null)
			log.warn("the node does not say what it can simulate: bids are refused until it does", { version });
		else if (method === "eth_simulateV1")
			log.info("the node simulates so much gas in one request, and so many blocks ahead", limits);
		else if (method === "debug_traceCall")
			log.error(
				"the node lacks eth_simulateV1 with overrides: bids are refused, and transactions are simulated one by one",
				limits,
			);
		else
			log.error(
				"the node simulates nothing: bids are refused, /fast and /maxbackruns send unsimulated, /noreverts and /fullprivacy hold",
				{ version },
			);
	}
}

/** Whether the node does less than what was known of it. */
function isLess(found: Learnt, known: Learnt): boolean {
	if ((known.traces && !found.traces) || (known.gasCap !== null && found.gasCap === null)) return true;
	if (!known.simulates) return false;
	const isNearer = (found.maxBlocks ?? Infinity) < (known.maxBlocks ?? Infinity);
	return !found.simulates || isNearer || found.missing.length > known.missing.length;
}

type Found = ({ readonly kind: "learnt" } & Learnt) | { readonly kind: "silent" | "fault" };

/**
 * Asks the node what it can simulate: `silent` if it does not even answer with its head, `fault` if it fails to answer simulations
 * alone, unless `mustEnd`.
 */
async function learnAbilities(
	{ node, slot }: Pick<AbilitiesDependencies, "node" | "slot">,
	mustEnd: boolean,
): Promise<Found> {
	const [latest, named, gasCap] = await Promise.all([
		ask(node, { method: "eth_getBlockByNumber", params: ["latest", false] }),
		ask(node, { method: "web3_clientVersion", params: [] }),
		readGasCap(node),
	]);
	const head = latest.kind === "result" ? readHeader(latest.value) : null;
	if (head === null) return { kind: "silent" };
	const version =
		named.kind === "result"
			? String(named.value)
					.replace(/[^\x20-\x7e]/g, "?")
					.slice(0, 100)
			: "unknown";
	const most = gasCap ?? DEFAULT_GAS_CAP;
	const lower = most < head.gasLimit ? [undefined, most] : [undefined];
	const shapes = lower.flatMap((maxBlockGas) =>
		DISPENSED.map((without) => ({ gasCap: most, maxBlockGas, without: new Set(without) })),
	);
	let able: { readonly shape: Shape; readonly ignored: readonly string[] } | null = null;
	for (const shape of shapes) {
		const tried = await tryShape(node, head, 1, shape);
		if (tried.kind === "fault" && !mustEnd) return { kind: "fault" };
		if (tried.kind !== "ran") continue;
		able = { shape, ignored: tried.ignored };
		break;
	}
	const traces = await triesTrace(node, head);
	const known = { kind: "learnt", version, traces, gasCap } as const;
	if (able === null)
		return { ...known, simulates: false, maxBlocks: undefined, maxBlockGas: undefined, ...NOTHING };
	const { shape, ignored } = able;
	const ahead = await farthest(node, head, shape);
	const isShort = slot !== undefined && slot.ms < 1_000;
	const sameTime = isShort && (await tryShape(node, head, 1, shape, 0)).kind === "ran";
	return {
		...known,
		simulates: true,
		without: shape.without,
		maxBlockGas: shape.maxBlockGas,
		sameTime,
		maxBlocks: ahead === MAX_BLOCKS_AHEAD ? undefined : ahead + 1,
		missing: [...shape.without, ...ignored, ...(shape.maxBlockGas === undefined ? [] : ["gasLimit"])],
	};
}

const NOTHING = { without: new Set<Dispensable>(), sameTime: false, missing: [] };
/** What is left out, if the node rejects the request otherwise. */
const DISPENSED: readonly (readonly Dispensable[])[] = [
	[],
	["beaconRoot"],
	["prevRandao"],
	["prevRandao", "beaconRoot"],
];

interface Shape extends RequestLimits {
	readonly without: ReadonlySet<Dispensable>;
}

/** The farthest block above the head in which the node simulates, up to the farthest that may be asked for. */
async function farthest(node: SimulationNode, head: Header, shape: Shape): Promise<number> {
	let [works, fails] = [1, MAX_BLOCKS_AHEAD + 1];
	for (let ahead = MAX_BLOCKS_AHEAD; fails - works > 1; ahead = (works + fails) >> 1) {
		if ((await tryShape(node, head, ahead, shape)).kind === "ran") works = ahead;
		else fails = ahead;
	}
	return works;
}

type Tried =
	/** It ran as it must; `ignored` are block overrides without effect. */
	{ readonly kind: "ran"; readonly ignored: readonly string[] } | { readonly kind: "unsupported" | "fault" };

/** From one block to the next. */
const STEP_SECONDS = 7;

/** Sends a request as simulations do, so many blocks above the head. */
async function tryShape(
	node: SimulationNode,
	head: Header,
	ahead: number,
	shape: Shape,
	stepSeconds = STEP_SECONDS,
): Promise<Tried> {
	const part = probePart(head, ahead, shape.without, stepSeconds);
	const answer = await ask(node, simulateCall(part, [1], shape));
	if (answer.kind === "fault") return { kind: "fault" };
	const results = answer.kind === "result" && Array.isArray(answer.value) ? answer.value.slice(-2) : [];
	const [shown, balances] = results.map((block: unknown) => onlyReturned({ kind: "result", value: [block] }));
	if (shown?.length !== 2 + 7 * 64 || balances?.length !== 2 + 2 * 64) return { kind: "unsupported" };
	const words = Array.from({ length: 7 }, (_, i) => BigInt(`0x${shown.slice(2 + 64 * i, 66 + 64 * i)}`));
	const { timestamp, number, baseFee, gasLimit } = part.block;
	const [time, at, fee, limit, coinbase, randao, stored] = words;
	const isRight =
		time === BigInt(timestamp) &&
		at === BigInt(number) &&
		fee === baseFee &&
		coinbase === BigInt(COINBASE) &&
		stored === BigInt(DRAWN);
	if (!isRight) return { kind: "unsupported" };
	const ignored = [
		...(randao === BigInt(DRAWN) || shape.without.has("prevRandao") ? [] : ["prevRandao"]),
		...(limit === gasLimit || shape.maxBlockGas !== undefined ? [] : ["gasLimit"]),
	];
	return { kind: "ran", ignored };
}

/** Whether the node traces calls, and what they change. */
async function triesTrace(node: SimulationNode, head: Header): Promise<boolean> {
	const part = probePart(head, 1, new Set());
	const traced = await traceFirst({ ...part, chain: [...part.chain, ...part.chain] }, (calls) =>
		Promise.all(calls.map((call) => ask(node, call))),
	);
	return traced.outcome.ok && traced.state !== null;
}

/** A transaction that shows its block and the state, in a block so far above the head. */
function probePart(
	head: Header,
	ahead: number,
	without: ReadonlySet<Dispensable>,
	stepSeconds = STEP_SECONDS,
): Part {
	// A fee and times that no node would answer by chance.
	const baseFee = 0x1ee3an;
	const block = {
		...{
			stateBlock: head.number,
			number: head.number + ahead,
			timestamp: head.timestamp + stepSeconds * ahead,
		},
		baseFee,
		blobBaseFee: 7n,
		gasLimit: head.gasLimit,
		feeRecipient: COINBASE,
	};
	const tx: DecodedTransaction = {
		type: 2,
		chainId: 0n,
		nonce: 0n,
		gasLimit: GAS,
		to: SHOWN,
		value: 0n,
		data: Buffer.alloc(0),
		accessList: [],
		gasPrice: null,
		maxFeePerGas: baseFee + 1n,
		maxPriorityFeePerGas: 1n,
		maxFeePerBlobGas: null,
		blobVersionedHashes: [],
		authorizationList: [],
		sidecar: null,
		v: 0n,
		yParity: 0,
		r: 0n,
		s: 0n,
		hash: DRAWN,
		from: PROBE_CALLER,
		raw: Buffer.alloc(0),
		size: 0,
		zeroBytes: 0,
	};
	const slot = `0x${"0".repeat(64)}`;
	return {
		block,
		chain: [tx],
		mayFail: new Set<string>(),
		measured: false,
		mayWait: false,
		prevRandao: without.has("prevRandao") ? null : DRAWN,
		beaconRoot: without.has("beaconRoot") ? null : DRAWN,
		accounts: new Map([[PROBE_CALLER, { nonce: 0n, balance: 4n * GAS * baseFee }]]),
		state: {
			[SHOWN]: { code: SHOW_CODE, stateDiff: { [slot]: DRAWN } },
			[PROBE_CALLER]: { balance: toQuantity(4n * GAS * baseFee), nonce: "0x0" },
		},
	};
}

/** The gas that the node gives one request, by a call that asks for more than any node gives; null if it does not say. */
async function readGasCap(node: SimulationNode): Promise<bigint | null> {
	const call = { from: PROBE_CALLER, to: PROBE_ADDRESS, gas: toQuantity(MUCH_GAS) };
	const state = { [PROBE_ADDRESS]: { code: GAS_CODE } };
	const block = {
		blockOverrides: { gasLimit: toQuantity(2n * MUCH_GAS) },
		stateOverrides: state,
		calls: [call],
	};
	const params = [{ blockStateCalls: [block], validation: false }, "latest"];
	const answer = await ask(node, { method: "eth_simulateV1", params });
	const simulated = onlyCall(answer);
	if (simulated !== null) {
		const { returned, gasUsed } = simulated;
		return capOf(gasLeft(returned), gasUsed === null ? USED_BEFORE : gasUsed - USED_AFTER);
	}
	// A node that does not answer is not waited for twice.
	if (answer.kind === "fault") return null;
	// Of a block with so much gas reth runs none, and others simulate nothing.
	const called = async (gas: bigint) => {
		const params = [{ ...call, gas: toQuantity(gas) }, "latest", state];
		const result = await ask(node, { method: "eth_call", params });
		return gasLeft(result.kind === "result" ? readHex(result.value) : null);
	};
	const left = await called(MUCH_GAS);
	const littleLeft = left === null ? null : await called(LITTLE_GAS);
	const isShown = littleLeft !== null && littleLeft < LITTLE_GAS;
	return capOf(left, isShown ? LITTLE_GAS - littleLeft : USED_BEFORE);
}

function gasLeft(returned: string | null): bigint | null {
	return returned?.length === 66 ? BigInt(returned) : null;
}

function capOf(left: bigint | null, usedBefore: bigint): bigint | null {
	if (left === null) return null;
	const cap = left + usedBefore;
	return cap < MUCH_GAS ? cap : MUCH_GAS;
}

async function ask(node: SimulationNode, call: RpcCall): Promise<NodeAnswer> {
	try {
		return readAnswer(await node.call(call, ASK_MS));
	} catch (thrown) {
		if (!(thrown instanceof UpstreamError)) throw thrown;
		return readTransportError(thrown);
	}
}
