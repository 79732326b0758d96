// Learns the simulation abilities of the node, with requests like those of simulations, and logs
// them. The relay asks at the start, then every ten minutes, because the URL may lead to another
// node. While the node does not simulate, it asks every ten seconds.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { NO_ACCESS } from "../../shared/ethereum/transactionFields.ts";
import { type RpcCall, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
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

export interface NodeAbilities extends RequestLimits {
	/** Whether its `eth_simulateV1` supports all that simulations need. */
	readonly simulates: boolean;
	/**
	 * Whether its `debug_traceCall` supports simulations, one transaction after another. Absent:
	 * not known.
	 */
	readonly traces?: boolean | undefined;
	/** Whether it accepts the beacon root as a block override. Absent: yes. */
	readonly beaconRoot?: boolean | undefined;
	/**
	 * Whether it simulates a block with its parent's timestamp; chains with short slots have such
	 * blocks. Absent: no.
	 */
	readonly sameTime?: boolean | undefined;
}

/** The simulation abilities of the node, for people. */
export interface AbilitiesReport {
	/** The node method that runs transactions; null if there is none, or it is not known yet. */
	readonly method: (typeof ENGINE_NAMES)[number] | null;
	/** Gas limit for all transactions of one request together; null if there is none. */
	readonly gasCap: number | null;
	/** Block overrides that it rejects or ignores. */
	readonly missing: readonly string[];
}

/** Deadline of a request, in ms. */
const ASK_MS = 5_000;
/** The default of geth and reth. */
const DEFAULT_GAS_CAP = 50_000_000n;
/** More than any gas cap. */
const MUCH_GAS = 2n ** 49n;
/**
 * GAS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN; and the gas that it uses after it has read the gas left.
 */
const GAS_CODE = "0x5a5f5260205ff3";
const USED_AFTER = 13n;
/**
 * Returns TIMESTAMP, NUMBER, BASEFEE, GASLIMIT, COINBASE, PREVRANDAO and the value of slot 0, a
 * word each.
 */
const SHOW_CODE = "0x425f52436020524860405245606052416080524460a0525f5460c05260e05ff3";
/** An unused address for that contract, and one for a fee recipient. */
const SHOWN = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b73";
const COINBASE = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b74";
const DRAWN = `0x${"5a".repeat(32)}`;
const GAS = 100_000n;

/**
 * Time between two requests for the abilities, in ms: while the node does not simulate or respond,
 * and while it does.
 */
const SOON_MS = 10_000;
const LATER_MS = 600_000;

/** The learnt abilities. */
interface Learnt extends NodeAbilities {
	readonly version: string;
	readonly missing: readonly string[];
}

export interface AbilitiesDependencies {
	readonly node: SimulationNode;
	/**
	 * If slots are shorter than a second, the node is tested with blocks of one second. Default:
	 * longer slots.
	 */
	readonly slot?: SlotLength;
	readonly clock: Clock;
	readonly background: Pick<Background, "run">;
	readonly log: Logger;
}

/**
 * The abilities as far as they are known. Until the node has answered, every ability is assumed to
 * exist.
 */
export class LearntAbilities implements NodeAbilities {
	readonly #dependencies: AbilitiesDependencies;
	#learnt: Learnt | null = null;
	#isAsking = false;
	/** Monotonic ms. */
	#askedAt = 0;
	#logged = "";

	constructor(dependencies: AbilitiesDependencies) {
		this.#dependencies = dependencies;
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

	get maxBlockGas(): bigint | undefined {
		return this.#learnt?.maxBlockGas;
	}

	get beaconRoot(): boolean {
		return this.#learnt?.beaconRoot !== false;
	}

	get sameTime(): boolean {
		return this.#learnt?.sameTime === true;
	}

	/** Whether the node is known to simulate one transaction behind another, which bids need. */
	get bidding(): boolean {
		return this.#learnt?.simulates === true;
	}

	/** For `/info`. */
	get report(): AbilitiesReport {
		const learnt = this.#learnt;
		const method = learnt?.simulates ? ENGINE_NAMES[0] : learnt?.traces ? ENGINE_NAMES[1] : null;
		if (learnt === null || method === null) return { method: null, gasCap: null, missing: [] };
		return {
			method,
			gasCap: this.gasCap < MUCH_GAS ? Number(this.gasCap) : null,
			missing: learnt.missing,
		};
	}

	/** Tests the node now. If it does not respond, nothing changes. Never throws. */
	async learn(): Promise<void> {
		if (this.#isAsking) return;
		this.#isAsking = true;
		try {
			this.#learnt = (await learnAbilities(this.#dependencies)) ?? this.#learnt;
			this.#say();
		} finally {
			this.#askedAt = this.#dependencies.clock.monotonic();
			this.#isAsking = false;
		}
	}

	/** Called at each head; tests the node again if it is time. */
	headCame(): void {
		const { clock, background } = this.#dependencies;
		const afterMs = this.bidding ? LATER_MS : SOON_MS;
		if (this.#isAsking || clock.monotonic() - this.#askedAt < afterMs) return;
		background.run("abilities", () => this.learn());
	}

	/** Logs the known abilities, if they have changed. */
	#say(): void {
		const { log } = this.#dependencies;
		const learnt = this.#learnt;
		const { report } = this;
		const version = learnt?.version ?? "unknown";
		const text = JSON.stringify([version, report]);
		if (text === this.#logged) return;
		this.#logged = text;
		const { method, gasCap, missing } = report;
		const limits = {
			version,
			...(gasCap === null ? {} : { limit: gasCap }),
			...(missing.length === 0 ? {} : { reason: `without ${missing.join(", ")}` }),
		};
		if (learnt === null)
			log.warn("node does not report what it can simulate: refusing bids until it does", { version });
		else if (method === "eth_simulateV1") log.info("node's gas limit for one simulation", limits);
		else if (method === "debug_traceCall")
			log.error(
				"node lacks eth_simulateV1 with overrides: refusing bids, simulating transactions one by one",
				limits,
			);
		else
			log.error(
				"node simulates nothing: refusing bids, sending /fast and /maxbackruns unsimulated, not sending /noreverts and /fullprivacy",
				{ version },
			);
	}
}

/** Tests the simulation abilities of the node; null if it does not answer with its head. */
async function learnAbilities({
	node,
	slot,
}: Pick<AbilitiesDependencies, "node" | "slot">): Promise<Learnt | null> {
	const [latest, named, cap] = await Promise.all([
		ask(node, { method: "eth_getBlockByNumber", params: ["latest", false] }),
		ask(node, { method: "web3_clientVersion", params: [] }),
		readGasCap(node),
	]);
	const head = latest.kind === "result" ? readHeader(latest.value) : null;
	if (head === null) return null;
	const version =
		named.kind === "result"
			? String(named.value)
					.replace(/[^\x20-\x7e]/g, "?")
					.slice(0, 100)
			: "unknown";
	const gasCap = cap ?? DEFAULT_GAS_CAP;
	const traces = await triesTrace(node, head);
	const known = { version, traces, gasCap };
	// reth rejects a beacon root, and a block with more gas than its cap for one request.
	for (const shape of [
		{ gasCap, beaconRoot: true },
		{ gasCap, beaconRoot: false, maxBlockGas: gasCap },
	]) {
		const ignored = await tryShape(node, head, shape);
		if (ignored === null) continue;
		const isShort = slot !== undefined && slot.ms < 1_000;
		const sameTime = isShort && (await tryShape(node, head, shape, 0)) !== null;
		const missing = shape.beaconRoot ? ignored : ["beaconRoot", ...ignored];
		return { ...known, ...shape, simulates: true, sameTime, missing };
	}
	return { ...known, simulates: false, missing: [] };
}

/** From one block to the next. */
const STEP_SECONDS = 7;

/**
 * Sends a request as simulations do. Returns the block overrides without effect, or null if the
 * result is wrong.
 */
async function tryShape(
	node: SimulationNode,
	head: Header,
	shape: RequestLimits & { readonly beaconRoot: boolean },
	stepSeconds = STEP_SECONDS,
): Promise<readonly string[] | null> {
	const part = probePart(head, shape.beaconRoot, stepSeconds);
	const answer = await ask(node, simulateCall(part, [1], shape));
	const results = answer.kind === "result" && Array.isArray(answer.value) ? answer.value.slice(-2) : [];
	const [shown, balances] = results.map((block: unknown) => onlyReturned({ kind: "result", value: [block] }));
	if (shown?.length !== 2 + 7 * 64 || balances?.length !== 2 + 2 * 64) return null;
	const words = Array.from({ length: 7 }, (_, i) => BigInt(`0x${shown.slice(2 + 64 * i, 66 + 64 * i)}`));
	const { timestamp, number, baseFee, gasLimit } = part.block;
	const [time, at, fee, limit, coinbase, randao, stored] = words;
	const isRight =
		time === BigInt(timestamp) &&
		at === BigInt(number) &&
		fee === baseFee &&
		coinbase === BigInt(COINBASE) &&
		stored === BigInt(DRAWN);
	if (!isRight) return null;
	return [...(randao === BigInt(DRAWN) ? [] : ["prevRandao"]), ...(limit === gasLimit ? [] : ["gasLimit"])];
}

/** Whether the node traces calls and the changes that they make. */
async function triesTrace(node: SimulationNode, head: Header): Promise<boolean> {
	const part = probePart(head, true);
	const traced = await traceFirst({ ...part, chain: [...part.chain, ...part.chain] }, (calls) =>
		Promise.all(calls.map((call) => ask(node, call))),
	);
	return traced.outcome.ok && traced.state !== null;
}

/** A transaction that shows its block and the state, in the block behind the head. */
function probePart(head: Header, beaconRoot: boolean, stepSeconds = STEP_SECONDS): Part {
	// A fee and times that no node would answer by chance.
	const baseFee = 0x1ee3an;
	const block = {
		...{ stateBlock: head.number, number: head.number + 1, timestamp: head.timestamp + stepSeconds },
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
		accessList: NO_ACCESS,
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
		prevRandao: DRAWN,
		beaconRoot: beaconRoot ? DRAWN : null,
		accounts: new Map([[PROBE_CALLER, { nonce: 0n, balance: 4n * GAS * baseFee }]]),
		state: {
			[SHOWN]: { code: SHOW_CODE, stateDiff: { [slot]: DRAWN } },
			[PROBE_CALLER]: { balance: toQuantity(4n * GAS * baseFee), nonce: "0x0" },
		},
	};
}

/**
 * The node's gas limit for one request, from a call that asks for more than any node gives; null if
 * it does not say.
 */
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
	if (simulated !== null) return capOf(simulated.returned, (simulated.gasUsed ?? 0n) - USED_AFTER);
	// A second request would only wait for a node that does not answer.
	if (answer.kind === "fault") return null;
	// reth runs no block with so much gas. eth_call does not show the gas used before, so this cap is
	// some thousand too low.
	const called = await ask(node, { method: "eth_call", params: [call, "latest", state] });
	return capOf(called.kind === "result" ? readHex(called.value) : null, 0n);
}

function capOf(gasLeft: string | null, usedBefore: bigint): bigint | null {
	if (gasLeft?.length !== 66) return null;
	const cap = BigInt(gasLeft) + usedBefore;
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
