// Simulation on go-ethereum where it is unlike anvil: gas caps, blocks ahead, forks. What passes here is what geth mines.
// Without GETH on recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { getCreateAddress, Wallet } from "ethers";
import { ForkRules } from "../../relay/chain/nextBlock.ts";
import type { BlockContext, SimulationOutcome, SimulationRequest } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { nodeAbilities } from "../../relay/simulation/nodeAbilities.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { RpcCall } from "../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../shared/log.ts";
import { type RecordedGeth, startRecordedGeth } from "../support/recordedGeth.ts";
import * as contracts from "../support/simulationContracts.ts";
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
const LOOPS = addressOf(5);
/** A coinbase that gives half of what it gets back. */
const GENEROUS = addressOf(6);
const ALLOC = Object.fromEntries(
	[
		// Uses gas until less than 100,000 is left: JUMPDEST GAS PUSH3 LT PUSH0 JUMPI STOP.
		[BURNS, "0x5b5a620186a0105f5700"],
		// The same, but reverts unless it begins with more than ten million.
		[NEEDS_MUCH, "0x5a6298968010600c575f5ffd5b5b5a620186a010600d5700"],
		[PAYS, contracts.PAYS_COINBASE],
		[EMITS, contracts.EMITS],
		[LOOPS, contracts.LOOPS],
		[GENEROUS, contracts.GIVES_HALF_BACK],
		[addressOf(10), contracts.DESTROYS_ITSELF],
		[addressOf(11), contracts.PRETENDS_TO_PAY],
		[addressOf(12), contracts.delegating(PAYS)],
		[addressOf(13), contracts.CREATES_A_DESTROYER],
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
	async block(ahead = 1, slotSeconds = 12, feeRecipient = COINBASE): Promise<BlockContext> {
		const head = (await this.geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		const stateBlock = Number(head.number);
		return {
			...{ stateBlock, feeRecipient, parentHash: String(head.hash) },
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

	/** Mines them for `coinbase`; whether all of them passed, and what it got beside fees. */
	async mined(
		txs: readonly DecodedTransaction[],
		coinbase = COINBASE,
	): Promise<{ passed: boolean; paid: bigint }> {
		const head = Number(await this.geth.rpc("eth_blockNumber"));
		const held = await this.balance(coinbase);
		await this.geth.mine({ txs: txs.map(({ raw }) => bytesToHex(raw)), coinbase });
		const block = (await this.geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		const baseFee = BigInt(block.baseFeePerGas ?? 0);
		let paid = (await this.balance(coinbase)) - held;
		let passed = true;
		for (const { hash, from } of txs) {
			const receipt = (await this.geth.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
			const [gas, price] = [BigInt(receipt.gasUsed ?? 0), BigInt(receipt.effectiveGasPrice ?? 0)];
			passed &&= receipt.status === "0x1";
			paid -= gas * (price - baseFee);
			if (from === coinbase) paid += gas * price;
		}
		await this.geth.revert(head);
		return { passed, paid };
	}

	async balance(address: string): Promise<bigint> {
		return BigInt(String(await this.geth.rpc("eth_getBalance", [address, "latest"])));
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

	const PAYMENTS: readonly (readonly [title: string, to: string | null, paid: bigint])[] = [
		["a transfer", COINBASE, BID],
		["a call in it", PAYS, BID],
		["a selfdestruct", addressOf(10), BID],
		["a callcode, which only looks like a payment", addressOf(11), 0n],
		["a delegatecall", addressOf(12), BID],
		["a contract that it creates and that destroys itself", addressOf(13), BID],
		["the creation that it is", null, BID],
	];
	for (const [title, to, paid] of PAYMENTS) {
		it(`measures ${title}: ${paid} wei, as geth mines it`, async () => {
			const target = await signed(fixture.wallet(0), { to: PAYS, value: 77n });
			const fields = to === null ? { data: contracts.PAYS_COINBASE } : { to };
			const fees = { maxFeePerGas: 500n * GWEI, maxPriorityFeePerGas: 40n * GWEI };
			const backrun = await signed(fixture.wallet(1), { value: BID, ...fees, ...fields });
			const request = backrunRequest(requestFor(await fixture.block(), MUCH, [target]), backrun, MUCH);
			const last = (await fixture.run(request)).at(-1);
			assert.equal(last?.ok === true && last.paid, paid);
			assert.equal((await fixture.mined([target, backrun])).paid, 77n + paid);
		});
	}

	it("measures what a coinbase keeps of it that gives some back", async () => {
		const target = await signed(fixture.wallet(0), { to: SINK });
		const backrun = await signed(fixture.wallet(1), { to: GENEROUS, value: BID });
		const block = await fixture.block(1, 12, GENEROUS);
		const last = (await fixture.run(backrunRequest(requestFor(block, MUCH, [target]), backrun, MUCH))).at(-1);
		assert.equal(last?.ok === true && last.paid, BID - BID / 2n);
		assert.equal((await fixture.mined([target, backrun], GENEROUS)).paid, BID - BID / 2n);
	});

	it("measures nothing where the coinbase pays itself, and what others pay it", async () => {
		const own = fixture.wallet(1).address.toLowerCase();
		const target = await signed(fixture.wallet(0), { to: SINK });
		for (const [fields, paid] of [
			[{ to: PAYS, value: BID }, 0n],
			[{ to: SINK, value: BID }, 0n],
		] as const) {
			const backrun = await signed(fixture.wallet(1), fields);
			const block = await fixture.block(1, 12, own);
			const last = (await fixture.run(backrunRequest(requestFor(block, MUCH, [target]), backrun, MUCH))).at(
				-1,
			);
			assert.equal(last?.ok === true && last.paid, paid);
		}
	});

	it("names why one fails without a trace, and the funds that it lacks", async () => {
		const outcomes = await untraced.run(
			requestFor(await fixture.block(), MUCH, [await signed(fixture.wallet(0), { to: LOOPS })]),
		);
		assert.deepEqual(outcomes, [{ ok: false, error: { code: "OUT_OF_GAS", message: "out of gas" } }]);
		const txs = await Promise.all(
			[0, 1, 2, 3].map((nonce) =>
				signed(fixture.wallet(0), { to: SINK, nonce, value: nonce === 2 ? MUCH : 1n }),
			),
		);
		const [, , poor, ...none] = await untraced.run(requestFor(await fixture.block(), MUCH, txs));
		assert.equal(none.length, 0);
		const left = MUCH - 2n * (1n + 21_000n * 4n * GWEI);
		const cost = MUCH + 200_000n * 5n * GWEI;
		assert.deepEqual(poor, {
			ok: false,
			error: {
				code: "INSUFFICIENT_FUNDS",
				message: `insufficient funds for gas * price + value: balance ${left}, tx cost ${cost}, overshot ${cost - left}`,
			},
		});
	});

	it("runs a creation in the middle of a chain", async () => {
		const wallet = fixture.wallet(0);
		const txs = [
			await signed(wallet, { to: SINK, nonce: 0 }),
			await signed(wallet, { data: contracts.deploying(contracts.EMITS), nonce: 1 }),
			await signed(wallet, { to: getCreateAddress({ from: wallet.address, nonce: 1 }), nonce: 2 }),
		];
		const outcomes = await untraced.run(requestFor(await fixture.block(), MUCH, txs));
		assert.deepEqual(
			outcomes.map((outcome) => outcome.ok && outcome.emitsEvents),
			[false, false, true],
		);
	});
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
