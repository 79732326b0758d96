// Nodes and their providers refuse, or ignore, parts of what simulations ask. Each such refusal is
// learnt and worked around, or the transaction is reported as not simulated; it is never a verdict
// on the transaction. A real server stands before a real node and does what they do.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import type { BlockContext } from "../../relay/domain/simulation.ts";
import { BEACON_ROOTS_ADDRESS } from "../../relay/simulation/engines/nodeObjects.ts";
import type { AbilitiesReport } from "../../relay/simulation/nodeAbilities.ts";
import { systemClock } from "../../shared/clock.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { PAYS_COINBASE, REVERTS } from "../support/contracts.ts";
import { ManualClock } from "../support/manualClock.ts";
import { type NodeProxy, type NodeRule, startNodeProxy } from "../support/nodes.ts";
import { ASKS_BEACON_ROOT, payingWhere } from "../support/simulationCheats.ts";
import {
	abilitiesOf,
	addressOf,
	backrunRequest,
	ETHER,
	messages,
	nextBlock,
	placeContracts,
	requestFor,
	signed,
	simulatorOn,
} from "../support/simulationFixture.ts";
import { until } from "../support/until.ts";

const PAYS = addressOf(1);
const FAILS = addressOf(2);
/** Pays five ether where no beacon root is known for the block's time, else one wei. */
const ROOTLESS = addressOf(3);
/** https://eips.ethereum.org/EIPS/eip-4788#bytecode */
const BEACON_ROOTS =
	"0x3373fffffffffffffffffffffffffffffffffffffffe14604d57602036146024575f5ffd5b5f35801560495762001fff810690815414603c575f5ffd5b62001fff01545f5260205ff35b5f5ffd5b62001fff42064281555f359062001fff015500";
const BID = 1_234_567n;
const NOT_POSSIBLE = "simulation not possible: the node refuses it";

interface SimulatedBlock {
	readonly blockOverrides: Readonly<Record<string, string>>;
	readonly stateOverrides?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}
/** The blocks of an eth_simulateV1; none for other methods. */
function blocksIn(method: string, params: readonly unknown[]): readonly SimulatedBlock[] {
	const [first] = params as readonly { readonly blockStateCalls?: readonly SimulatedBlock[] }[];
	return method === "eth_simulateV1" ? (first?.blockStateCalls ?? []) : [];
}

type Refusal = { readonly code: number; readonly message: string; readonly status?: number };
/** Refuses a simulation with a block that is refused, or with more blocks than `most`. */
const refusing = (
	error: Refusal,
	isRefused: (block: SimulatedBlock) => boolean,
	most = Infinity,
): NodeRule => ({
	refuse: (method, params) => {
		const blocks = blocksIn(method, params);
		return blocks.length > most || blocks.some(isRefused) ? error : null;
	},
});
const without = (error: Refusal, ...methods: readonly string[]): NodeRule => ({
	refuse: (method) => (methods.includes(method) ? error : null),
});
const both = (...rules: readonly NodeRule[]): NodeRule => ({
	refuse: (method, params) =>
		rules.map((rule) => rule.refuse?.(method, params)).find((error) => error) ?? null,
});
/** A node that does not know an override. */
const ignoring = (name: string): NodeRule => ({
	forward: (call) =>
		call.method === "eth_simulateV1"
			? (JSON.parse(JSON.stringify(call, (key, value) => (key === name ? undefined : value))) as typeof call)
			: call,
});

const SIMULATE = "eth_simulateV1";
const TRACE = "debug_traceCall";
const GONE = { code: -32601, message: "the method does not exist/is not available" };
const LIMIT = { code: -38026, message: "Client adjustable limit reached" };
const BLOCKS = { code: -38026, message: "too many blocks" };
const PARAMS = { code: -32602, message: "invalid argument 0: unknown field" };

const ABLE = { method: SIMULATE, missing: [] } as const;
const TRACED = { method: TRACE, missing: [] } as const;
const UNABLE = { method: null, missing: [] } as const;
/** A transfer, one that reverts, and a bid for the block 30 above the head. */
const ALL = ["ok", "execution reverted", `${BID} wei`];
const NEAR = ["ok", "execution reverted", NOT_POSSIBLE];
const NONE = [NOT_POSSIBLE, NOT_POSSIBLE, NOT_POSSIBLE];

type Report = Omit<AbilitiesReport, "gasCap">;
const ROWS: readonly (readonly [
	title: string,
	rule: NodeRule,
	report: Report,
	outcomes: readonly string[],
])[] = [
	["serves everything", {}, ABLE, ALL],
	["runs ten blocks at most", refusing(BLOCKS, () => false, 10), ABLE, ALL],
	[
		"runs ten blocks at most, and does not trace",
		both(
			refusing(BLOCKS, () => false, 10),
			without(GONE, TRACE),
		),
		ABLE,
		NEAR,
	],
	["runs one block at most", refusing(BLOCKS, () => false, 1), TRACED, ALL],
	[
		"wants the gas limit of each block (reth)",
		refusing(LIMIT, ({ blockOverrides }) => blockOverrides.gasLimit === undefined),
		ABLE,
		ALL,
	],
	[
		"takes no block with more gas than it gives a call (reth)",
		{
			...refusing(LIMIT, ({ blockOverrides }) => BigInt(blockOverrides.gasLimit ?? 0) > 20_000_000n),
			forward: (call) =>
				call.method === "eth_call"
					? (JSON.parse(JSON.stringify(call).replace(/"gas":"0x\w+"/, `"gas":"0x1312d00"`)) as typeof call)
					: call,
		},
		{ ...ABLE, missing: ["beaconRoot", "gasLimit"] },
		ALL,
	],
	["has no eth_simulateV1", without(GONE, SIMULATE), TRACED, ALL],
	["traces nothing", without(GONE, TRACE), ABLE, ALL],
	["has neither", without(GONE, SIMULATE, TRACE), UNABLE, NONE],
	[
		"refuses both as no valid request",
		without({ code: -32600, message: "unsupported method" }, SIMULATE, TRACE),
		UNABLE,
		NONE,
	],
	["refuses both as invalid params", without(PARAMS, SIMULATE, TRACE), UNABLE, NONE],
	[
		"has both on another plan",
		without({ code: -32000, message: "not available on the free plan" }, SIMULATE, TRACE),
		UNABLE,
		NONE,
	],
	["answers both with HTTP 403", without({ ...GONE, status: 403 }, SIMULATE, TRACE), UNABLE, NONE],
	["refuses with words that nobody knows", without({ code: -32000, message: "no" }, SIMULATE), TRACED, ALL],
	[
		"refuses the beacon root",
		refusing(PARAMS, ({ blockOverrides }) => "beaconRoot" in blockOverrides),
		{ ...ABLE, missing: ["beaconRoot"] },
		ALL,
	],
	[
		"refuses PREVRANDAO",
		refusing(PARAMS, ({ blockOverrides }) => "prevRandao" in blockOverrides),
		TRACED,
		ALL,
	],
	["ignores PREVRANDAO", ignoring("prevRandao"), { ...ABLE, missing: ["prevRandao"] }, ALL],
	["ignores the time", ignoring("time"), TRACED, ALL],
	["ignores the base fee", ignoring("baseFeePerGas"), TRACED, ALL],
	["ignores the coinbase", ignoring("feeRecipient"), TRACED, ALL],
	["ignores changed storage", ignoring("stateDiff"), TRACED, ALL],
	[
		"refuses any state override",
		refusing(PARAMS, (block) => block.stateOverrides !== undefined),
		TRACED,
		ALL,
	],
	[
		"has no block without a base fee",
		refusing(
			{ code: -38012, message: "fee cap too low" },
			(block) => block.blockOverrides.baseFeePerGas === "0x0",
		),
		TRACED,
		ALL,
	],
	[
		"has no room in any block",
		refusing({ code: -38015, message: "block gas limit exceeded" }, () => true),
		TRACED,
		ALL,
	],
	["always fails", without({ code: -32603, message: "internal error" }, SIMULATE), TRACED, ALL],
];

describe("a node that", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let node: JsonRpcClient;
	before(async () => {
		chain = await startDevChain();
		await placeContracts(chain, { [PAYS]: PAYS_COINBASE, [FAILS]: REVERTS });
		proxy = await startNodeProxy(chain.url);
		node = new JsonRpcClient({ url: proxy.url, timeoutMs: 10_000 }, { clock: systemClock });
	});
	after(async () => {
		await node.close();
		await proxy.stop();
		await chain.stop();
	});
	beforeEach(() => {
		proxy.setFault(null);
		proxy.setRule(null);
	});

	async function blockAhead(ahead: number): Promise<BlockContext> {
		const block = await nextBlock(chain);
		const { number, timestamp } = block;
		return { ...block, number: number + ahead - 1, timestamp: timestamp + 12 * (ahead - 1) };
	}

	/**
	 * The outcomes of a transfer, of a transaction that reverts, and of a bid for 30 blocks ahead.
	 */
	async function outcomes(abilities: Parameters<typeof simulatorOn>[1]): Promise<string[]> {
		const simulator = simulatorOn(node, abilities);
		const told: string[] = [];
		for (const to of [addressOf(99), FAILS]) {
			const tx = await signed(chain.wallet(0), { to });
			told.push(...messages(await simulator.simulate(requestFor(await blockAhead(1), 10n * ETHER, [tx]))));
		}
		const target = await signed(chain.wallet(0), { to: addressOf(99) });
		const backrun = await signed(chain.wallet(1), { to: PAYS, value: BID });
		const request = requestFor(await blockAhead(30), 10n * ETHER, [target]);
		const bid = await simulator.simulate(backrunRequest(request, backrun, 10n * ETHER));
		const last = bid.at(-1);
		return [...told, last?.ok === true ? `${last.paid} wei` : (messages(bid).at(-1) ?? "")];
	}

	for (const [title, rule, report, expected] of ROWS) {
		it(`${title}: ${report.method ?? "nothing"}`, async () => {
			proxy.setRule(rule);
			const abilities = await abilitiesOf(node);
			const { gasCap, ...known } = abilities.report;
			assert.deepEqual(known, report);
			assert.equal(abilities.bidding, report.method === SIMULATE);
			assert.deepEqual(await outcomes(abilities), expected);
		});

		// Ignored parts are found by asking, not by a run.
		if (rule.forward !== undefined) continue;
		it(`${title}, though it was thought to be able to do everything`, async () => {
			proxy.setRule(rule);
			const told = await outcomes({ simulates: true, gasCap: 50_000_000n });
			// No verdict is wrong, though there may be none.
			for (const [i, one] of told.entries()) {
				const right = [ALL[i], NOT_POSSIBLE, "the node gave no verdict"];
				assert.ok(right.includes(one), one);
			}
		});
	}

	it("refuses the beacon root has it in the state, where a contract reads it", async () => {
		const rule = ROWS.find(([title]) => title === "refuses the beacon root")?.[1];
		await placeContracts(chain, {
			[BEACON_ROOTS_ADDRESS]: BEACON_ROOTS,
			[ROOTLESS]: payingWhere(`${ASKS_BEACON_ROOT} 15`),
		});
		proxy.setRule(rule ?? {});
		const target = await signed(chain.wallet(0), { to: addressOf(99) });
		const backrun = await signed(chain.wallet(1), { to: ROOTLESS, value: 5n * ETHER });
		const request = requestFor(await blockAhead(1), 10n * ETHER, [target]);
		const simulator = simulatorOn(node, await abilitiesOf(node));
		const last = (await simulator.simulate(backrunRequest(request, backrun, 10n * ETHER))).at(-1);
		assert.equal(last?.ok === true && last.paid, 1n);
	});

	it("does not answer is not said to take bids until it has, and then at the next head", async () => {
		const clock = new ManualClock();
		proxy.setFault({ kind: "html", status: 503 });
		const abilities = await abilitiesOf(node, clock);
		assert.deepEqual([abilities.bidding, abilities.report.method], [false, null]);
		proxy.setFault(null);
		abilities.headCame();
		assert.equal(abilities.bidding, false, "a node that is down is not asked all the time");
		await clock.advance(10_000);
		abilities.headCame();
		await until("it has answered", () => abilities.bidding);
	});

	it("loses eth_simulateV1: noticed within ten minutes, and again soon after it is back", async () => {
		const clock = new ManualClock();
		const abilities = await abilitiesOf(node, clock);
		assert.equal(abilities.bidding, true);
		proxy.setRule(without(GONE, SIMULATE));
		await clock.advance(590_000);
		abilities.headCame();
		assert.equal(abilities.bidding, true);
		await clock.advance(10_000);
		abilities.headCame();
		await until("it has lost it", () => !abilities.bidding);
		assert.equal(abilities.report.method, TRACE);
		proxy.setRule(null);
		await clock.advance(10_000);
		abilities.headCame();
		await until("it has it again", () => abilities.bidding);
	});
});
