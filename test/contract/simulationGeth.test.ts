// Simulation on go-ethereum where it is unlike anvil: gas caps, blocks ahead, forks. What passes here is what geth mines.
// Without GETH on recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Wallet } from "ethers";
import { ForkRules } from "../../relay/chain/nextBlock.ts";
import type { BlockContext, SimulationOutcome, SimulationRequest } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { nodeAbilities } from "../../relay/simulation/nodeAbilities.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../shared/log.ts";
import * as contracts from "../support/contracts.ts";
import { type RecordedGeth, startRecordedGeth } from "../support/recordedGeth.ts";
import {
	addressOf,
	backrunRequest,
	codes,
	ETHER,
	GWEI,
	requestFor,
	signed,
	simulatorOn,
} from "../support/simulationFixture.ts";

const SINK = addressOf(99);
const COINBASE = "0x00000000000000000000000000000000facade02";
const BURNS = addressOf(1);
const NEEDS_MUCH = addressOf(2);
const PAYS = addressOf(3);
const EMITS = addressOf(4);
const ALLOC = Object.fromEntries(
	[
		// Uses gas until less than 100,000 is left: JUMPDEST GAS PUSH3 LT PUSH0 JUMPI STOP.
		[BURNS, "0x5b5a620186a0105f5700"],
		// The same, but reverts unless it begins with more than ten million.
		[NEEDS_MUCH, "0x5a6298968010600c575f5ffd5b5b5a620186a010600d5700"],
		[PAYS, contracts.PAYS_COINBASE],
		[EMITS, contracts.EMITS],
		[addressOf(10), contracts.DESTROYS_ITSELF],
	].map(([address = "", code = ""]) => [address.slice(2), { code, balance: "0x0" }]),
);
const BID = 1_234_567_890_123_457n;
const MUCH = 10_000n * ETHER;

/** What the relay draws is the same each time, so that the recorded answers are to these questions. */
function undrawn(geth: RecordedGeth, refused = ""): SimulationNode {
	const fixed = (call: RpcCall): RpcCall =>
		JSON.parse(
			JSON.stringify(call, (name, value) =>
				name === "prevRandao" || name === "beaconRoot" ? `0x${"5a".repeat(32)}` : value,
			),
		) as RpcCall;
	const none = {
		ok: false,
		error: { code: -32601, message: "the method does not exist", data: undefined },
	} as const;
	const call = async (asked: RpcCall) => (asked.method === refused ? none : geth.node.call(fixed(asked)));
	return { call, batch: (calls) => Promise.all(calls.map(call)) };
}

class Fixture {
	readonly geth: RecordedGeth;
	readonly node: SimulationNode;
	constructor(geth: RecordedGeth, refused?: string) {
		this.geth = geth;
		this.node = undrawn(geth, refused);
	}

	wallet(index: number): Wallet {
		return new Wallet(this.geth.accounts[index]?.privateKey ?? "");
	}

	/** The block so many behind the head, so many seconds from one to the next. */
	async block(ahead = 1, slotSeconds = 12): Promise<BlockContext> {
		const head = (await this.geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		const stateBlock = Number(head.number);
		return {
			...{ stateBlock, feeRecipient: COINBASE, parentHash: String(head.hash) },
			number: stateBlock + ahead,
			timestamp: Number(head.timestamp) + ahead * slotSeconds,
			baseFee: 3n * GWEI,
			blobBaseFee: 1n,
			gasLimit: 60_000_000n,
		};
	}

	async run(request: SimulationRequest): Promise<readonly SimulationOutcome[]> {
		const abilities = await nodeAbilities(this.node, "geth", silentLogger);
		return simulatorOn(this.node, abilities).simulate(request);
	}

	/** Mines them; whether all of them passed, and what the coinbase got beside fees. */
	async mined(txs: readonly DecodedTransaction[]): Promise<{ passed: boolean; paid: bigint }> {
		const head = Number(await this.geth.rpc("eth_blockNumber"));
		const held = await this.balance();
		await this.geth.mine({ txs: txs.map(({ raw }) => bytesToHex(raw)), coinbase: COINBASE });
		const block = (await this.geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		const baseFee = BigInt(block.baseFeePerGas ?? 0);
		let paid = (await this.balance()) - held;
		let passed = true;
		for (const { hash } of txs) {
			const receipt = (await this.geth.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
			const [gas, price] = [BigInt(receipt.gasUsed ?? 0), BigInt(receipt.effectiveGasPrice ?? 0)];
			passed &&= receipt.status === "0x1";
			paid -= gas * (price - baseFee);
		}
		await this.geth.revert(head);
		return { passed, paid };
	}

	async balance(): Promise<bigint> {
		return BigInt(String(await this.geth.rpc("eth_getBalance", [COINBASE, "latest"])));
	}
}

describe("simulation on go-ethereum", () => {
	let fixture: Fixture;
	let untraced: Fixture;
	before(async () => {
		const geth = await startRecordedGeth("simulation", { alloc: ALLOC });
		fixture = new Fixture(geth);
		untraced = new Fixture(geth, "debug_traceCall");
		await geth.mine({ txs: [], coinbase: COINBASE });
	});
	after(() => fixture.geth.stop());

	it("finds the gas that the node gives to one request", async () => {
		const abilities = await nodeAbilities(fixture.node, "geth", silentLogger);
		assert.deepEqual(abilities, { simulates: true, gasCap: 50_000_000n });
	});

	describe("of five transactions with more gas together than the node gives to one request", () => {
		const five = () =>
			Promise.all(
				[0, 1, 2, 3, 4].map((nonce) =>
					signed(fixture.wallet(0), { to: nonce === 4 ? NEEDS_MUCH : BURNS, nonce, gasLimit: 11_500_000n }),
				),
			);

		it("passes all, as geth mines them", async () => {
			const txs = await five();
			const outcomes = await fixture.run(requestFor(await fixture.block(), MUCH, txs));
			assert.deepEqual(codes(outcomes), ["ok", "ok", "ok", "ok", "ok"]);
			assert.equal((await fixture.mined(txs)).passed, true);
		});

		it("does not say that the last one fails where the node does not trace", async () => {
			const outcomes = await untraced.run(requestFor(await fixture.block(), MUCH, await five()));
			assert.deepEqual(codes(outcomes), ["ok", "ok", "ok", "ok", "NODE_UNAVAILABLE"]);
		});

		it("measures a backrun behind four of them", async () => {
			const targets = (await five()).slice(0, 4);
			const backrun = await signed(fixture.wallet(1), { to: PAYS, value: BID, gasLimit: 10_000_000n });
			const request = backrunRequest(requestFor(await fixture.block(), MUCH, targets), backrun, MUCH);
			const outcomes = await fixture.run(request);
			const last = outcomes.at(-1);
			assert.deepEqual([codes(outcomes).length, last?.ok === true && last.paid], [5, BID]);
			const unknown = (await untraced.run(request)).at(-1);
			assert.equal(unknown?.ok === true ? unknown.paid : undefined, null);
		});

		it("holds that a sixth has no room in the block, unless it may wait for the next one", async () => {
			const sixth = await signed(fixture.wallet(0), { to: BURNS, nonce: 5, gasLimit: 11_500_000n });
			const request = requestFor(await fixture.block(), MUCH, [...(await five()).slice(0, 4), sixth]);
			const small = { ...request, block: { ...request.block, gasLimit: 34_500_000n } };
			const chain = small.transactions.slice(0, 4);
			assert.deepEqual(codes(await fixture.run({ ...small, transactions: chain })), [
				...["ok", "ok", "ok"],
				"GAS_LIMIT_TOO_HIGH",
			]);
			const waiting = await fixture.run({ ...small, transactions: chain, mayWait: true });
			assert.deepEqual(codes(waiting), ["ok", "ok", "ok", "ok"]);
		});
	});

	for (const [ahead, slotSeconds] of [
		[2, 12],
		[30, 12],
		[2, 1],
		[30, 2],
	] as const) {
		it(`measures a bid for ${ahead} blocks ahead, ${slotSeconds} s from one to the next`, async () => {
			const target = await signed(fixture.wallet(0), { to: SINK, value: 5n });
			const backrun = await signed(fixture.wallet(1), { to: PAYS, value: BID });
			const block = await fixture.block(ahead, slotSeconds);
			const outcomes = await fixture.run(backrunRequest(requestFor(block, MUCH, [target]), backrun, MUCH));
			assert.deepEqual(codes(outcomes), ["ok", "ok"]);
			assert.equal(outcomes[1]?.ok === true && outcomes[1].paid, BID);
		});
	}
});

describe("simulation on go-ethereum with Amsterdam", () => {
	let fixture: Fixture;
	before(async () => {
		fixture = new Fixture(await startRecordedGeth("simulationAmsterdam", { alloc: ALLOC, amsterdam: true }));
		await fixture.geth.mine({ txs: [], coinbase: COINBASE });
	});
	after(() => fixture.geth.stop());

	it("takes the log of each transfer for none of the transaction's", async () => {
		const wallet = fixture.wallet(0);
		const txs = [
			// To be made an account costs more there.
			await signed(wallet, { to: SINK, value: 5n, gasLimit: 1_000_000n }),
			await signed(wallet, { to: EMITS, value: 5n, nonce: 1 }),
		];
		const outcomes = await fixture.run(requestFor(await fixture.block(), MUCH, txs));
		assert.deepEqual(
			outcomes.map((outcome) => outcome.ok && outcome.emitsEvents),
			[false, true],
		);
	});

	it("allows what the fork allows: more than 2^24 gas, and longer init code", async () => {
		const background = { run: () => assert.fail("nothing is asked for in the background") };
		const rules = new ForkRules({ chainId: 31_337n }, { node: fixture.geth.node, background });
		await rules.read();
		assert.deepEqual([rules.maxTxGas, rules.maxInitCodeBytes], [null, 131_072]);
		const wallet = fixture.wallet(0);
		const txs = [
			await signed(wallet, { to: SINK, gasLimit: 20_000_000n }),
			await signed(wallet, { data: `0x${"00".repeat(60_000)}`, nonce: 1, gasLimit: 8_000_000n }),
		];
		assert.deepEqual(codes(await fixture.run(requestFor(await fixture.block(), MUCH, txs))), ["ok", "ok"]);
		assert.equal((await fixture.mined(txs)).passed, true);
	});

	it("measures a payment, though each transfer is a log", async () => {
		const gasLimit = 1_000_000n;
		const target = await signed(fixture.wallet(0), { to: PAYS, value: 77n, gasLimit });
		const backrun = await signed(fixture.wallet(1), { to: addressOf(10), value: BID, gasLimit });
		const request = backrunRequest(requestFor(await fixture.block(), MUCH, [target]), backrun, MUCH);
		const last = (await fixture.run(request)).at(-1);
		assert.equal(last?.ok === true && last.paid, BID);
		assert.equal((await fixture.mined([target, backrun])).paid, 77n + BID);
	});
});
