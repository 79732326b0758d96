// Contract of the engines that run chains, for backruns on a real node: what a backrun pays to the fee recipient must
// be exact to the wei, however it pays, and the same as what the coinbase gets when both are mined for real. It must find
// what its target left, pass or fail by that, and keep the relay's own rules of nonces and funds.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { TransactionLike, Wallet } from "ethers";
import type { BlockContext, SimulatedAccount, SimulationOutcome } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import * as contracts from "../support/contracts.ts";
import {
	addressOf,
	backrunRequest,
	codes,
	ETHER,
	fundedWallet,
	GWEI,
	messages,
	nextBlock,
	placeContracts,
	requestFor,
	type SimulationChain,
	signed,
	simulatorOn,
	WAYS_ON_NODES,
} from "../support/simulationFixture.ts";

const SINK = addressOf(99);
const COINBASE = "0x00000000000000000000000000000000facade01";
const PAYS = addressOf(1);
const PAYS_AND_REVERTS = addressOf(2);
const DELEGATES = addressOf(6);
const GENEROUS = addressOf(13);
const GATE = addressOf(21);
const PAYS_CALLER = addressOf(22);
const LOOPS = addressOf(23);
const CLOSED = contracts.errorString("closed");
const PLACED: Readonly<Record<string, string>> = {
	[PAYS]: contracts.PAYS_COINBASE,
	[PAYS_AND_REVERTS]: contracts.PAYS_COINBASE_AND_REVERTS,
	[addressOf(3)]: contracts.forwarding(PAYS),
	[addressOf(4)]: contracts.forwarding(PAYS_AND_REVERTS),
	[addressOf(5)]: contracts.DESTROYS_ITSELF,
	[DELEGATES]: contracts.delegating(PAYS),
	[addressOf(7)]: contracts.forwarding(DELEGATES),
	[addressOf(8)]: contracts.PRETENDS_TO_PAY,
	[addressOf(9)]: contracts.CREATES_A_PAYER,
	[addressOf(10)]: contracts.CREATES_A_DESTROYER,
	[addressOf(11)]: contracts.forwarding(addressOf(3)),
	[addressOf(12)]: contracts.PROMISES_TOO_MUCH,
	[GENEROUS]: contracts.GIVES_HALF_BACK,
	[GATE]: contracts.gate(CLOSED),
	[PAYS_CALLER]: contracts.PAYS_CALLER,
	[LOOPS]: contracts.LOOPS,
};
/** The most that a transaction of the tests can cost: 200,000 gas at 5 gwei. */
const CAP = 200_000n * 5n * GWEI;
/** What a plain transfer pays at the tests' base fee of 3 gwei and tip of 1. */
const TRANSFER_FEE = 21_000n * 4n * GWEI;

/** An odd number of wei: nothing else comes to it. */
const BID = 1_234_567_890_123_457n;

interface Row {
	/** With value {@link BID} unless it says otherwise. */
	readonly fields: TransactionLike;
	readonly paid: bigint;
}

const ROWS: Readonly<Record<string, Row>> = {
	"a transfer to the coinbase": { fields: { to: COINBASE }, paid: BID },
	"a legacy transfer to the coinbase": { fields: { to: COINBASE, type: 0, gasPrice: 5n * GWEI }, paid: BID },
	"one wei": { fields: { to: COINBASE, value: 1n }, paid: 1n },
	"a call in it": { fields: { to: PAYS }, paid: BID },
	"a call of a call's call": { fields: { to: addressOf(11) }, paid: BID },
	"a call that was undone": { fields: { to: addressOf(4) }, paid: 0n },
	"a selfdestruct": { fields: { to: addressOf(5) }, paid: BID },
	"delegated code": { fields: { to: DELEGATES }, paid: BID },
	"delegated code of a call": { fields: { to: addressOf(7) }, paid: BID },
	"a callcode, which only looks like a payment": { fields: { to: addressOf(8) }, paid: 0n },
	"a call with more than there is": { fields: { to: addressOf(12) }, paid: 0n },
	"a contract that it creates": { fields: { to: addressOf(9) }, paid: BID },
	"a contract that it creates and that destroys itself": { fields: { to: addressOf(10) }, paid: BID },
	"the creation that it is": { fields: { data: contracts.PAYS_COINBASE }, paid: BID },
	"nothing but value for somebody else": { fields: { to: SINK }, paid: 0n },
	"nothing but a high priority fee": {
		fields: { to: SINK, maxFeePerGas: 500n * GWEI, maxPriorityFeePerGas: 400n * GWEI },
		paid: 0n,
	},
	"a transfer and a high priority fee": {
		fields: { to: PAYS, maxFeePerGas: 500n * GWEI, maxPriorityFeePerGas: 400n * GWEI },
		paid: BID,
	},
};

for (const [way, abilities, name, start] of WAYS_ON_NODES) {
	describe(`a backrun by ${way} on ${name}`, () => {
		let chain: SimulationChain;
		let node: SimulationNode;
		let block: BlockContext;
		let user: Wallet;
		let searcher: Wallet;
		/** An account whose code hands its ether to whoever calls it. */
		let drained: Wallet;
		let poor: Wallet;
		let counted: Wallet;
		before(async () => {
			chain = await start(`simulationBackrunsBy${way.replace(/\W/g, "")}`);
			({ node } = chain);
			await placeContracts(chain, PLACED);
			await chain.rpc("anvil_setCoinbase", [COINBASE]);
			await chain.rpc("anvil_setBalance", [PAYS_CALLER, "0x7"]);
			user = await fundedWallet(chain, 2n * ETHER);
			searcher = await fundedWallet(chain, ETHER);
			drained = await fundedWallet(chain, ETHER);
			poor = await fundedWallet(chain, 0n);
			counted = await fundedWallet(chain, ETHER);
			await chain.rpc("anvil_setNonce", [counted.address, "0x4"]);
			await placeContracts(chain, { [drained.address]: `0xef0100${PAYS_CALLER.slice(2)}` });
			// Nobody has heard of the coinbase, so that it must be funded to be like a real one.
			await chain.rpc("anvil_setBalance", [COINBASE, "0x1"]);
			await chain.rpc("evm_mine");
			block = await nextBlock(chain);
		});
		after(() => chain.stop());

		async function simulate(target: DecodedTransaction, backrun: DecodedTransaction) {
			const request = backrunRequest(requestFor(block, 2n * ETHER, [target]), backrun, ETHER);
			return simulatorOn(node, abilities).simulate(request);
		}

		/** Wei that the coinbase gets beside its tips when both are mined; nothing of it stays. */
		async function mined(txs: readonly DecodedTransaction[]): Promise<bigint> {
			const snapshot = await chain.snapshot();
			const held = BigInt(String(await chain.rpc("eth_getBalance", [COINBASE, "latest"])));
			for (const { raw } of txs) await chain.rpc("eth_sendRawTransaction", [bytesToHex(raw)]);
			await chain.rpc("evm_mine");
			let gain = BigInt(String(await chain.rpc("eth_getBalance", [COINBASE, "latest"]))) - held;
			const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
			for (const { hash } of txs) {
				const receipt = (await chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
				assert.equal(receipt.status, "0x1");
				const tip = BigInt(receipt.effectiveGasPrice ?? 0) - BigInt(head.baseFeePerGas ?? 0);
				gain -= BigInt(receipt.gasUsed ?? 0) * tip;
			}
			await chain.revert(snapshot);
			return gain;
		}

		for (const [title, { fields, paid }] of Object.entries(ROWS)) {
			it(`pays ${paid} wei by ${title}`, async () => {
				const target = await signed(user, { to: SINK, value: 5n });
				const backrun = await signed(searcher, { value: BID, ...fields });
				const outcomes = await simulate(target, backrun);
				assert.deepEqual(payments(outcomes), [null, paid]);
				// Once on each node: what is mined does not depend on how it was simulated.
				if (way === "eth_simulateV1") assert.equal(await mined([target, backrun]), paid);
			});
		}

		it("pays not what its target pays", async () => {
			const target = await signed(user, { to: COINBASE, value: 7n });
			const outcomes = await simulate(target, await signed(searcher, { to: SINK }));
			assert.deepEqual(payments(outcomes), [null, 0n]);
			const both = await simulate(target, await signed(searcher, { to: PAYS, value: BID }));
			assert.deepEqual(payments(both), [null, BID]);
		});

		it("pays what a coinbase keeps that gives half of it back", async () => {
			const own = { ...block, feeRecipient: GENEROUS };
			const backrun = await signed(searcher, { to: GENEROUS, value: BID });
			const target = await signed(user, { to: SINK, value: 5n });
			const request = backrunRequest(requestFor(own, 2n * ETHER, [target]), backrun, ETHER);
			assert.deepEqual(payments(await simulatorOn(node, abilities).simulate(request)), [
				null,
				BID - BID / 2n,
			]);
		});

		it("pays what the coinbase gets where that sends it itself, whatever its gas costs", async () => {
			const own = { ...block, feeRecipient: searcher.address.toLowerCase() };
			const target = await signed(user, { to: SINK, value: 5n });
			for (const [to, value, paid] of [
				[PAYS, BID, 0n],
				[SINK, BID, 0n],
				[PAYS_CALLER, 0n, 7n],
			] as const) {
				const backrun = await signed(searcher, { to, value });
				const request = backrunRequest(requestFor(own, 2n * ETHER, [target]), backrun, ETHER);
				assert.deepEqual(payments(await simulatorOn(node, abilities).simulate(request)), [null, paid]);
			}
		});

		it("pays without a chain, too", async () => {
			const tx = await signed(searcher, { to: PAYS, value: BID });
			const request = backrunRequest(requestFor(block, 0n, []), tx, ETHER);
			const outcomes = await simulatorOn(node, abilities).simulate(request);
			assert.deepEqual(payments(outcomes), [BID]);
		});

		/** Backrun's sender: nonce 0 and an ether unless said. */
		function run(
			targets: readonly DecodedTransaction[],
			tx: DecodedTransaction,
			{ nonce = 0n, balance = ETHER }: Partial<SimulatedAccount> = {},
		): Promise<readonly SimulationOutcome[]> {
			const request = requestFor(block, 2n * ETHER, targets);
			return simulatorOn(node, abilities).simulate(backrunRequest(request, tx, balance, nonce));
		}

		const transfer = (wallet: Wallet, nonce: number, value: bigint, to = SINK) =>
			signed(wallet, { to, nonce, value, gasLimit: 21_000n });

		it("passes only where its target wrote what it needs", async () => {
			const opening = await signed(user, { to: GATE, data: `0x${"1".padStart(64, "0")}` });
			const through = await signed(searcher, { to: GATE });
			assert.deepEqual(codes(await run([opening], through)), ["ok", "ok"]);
			const outcomes = await run([await transfer(user, 0, 1n)], through);
			assert.deepEqual(codes(outcomes), ["ok", "EXECUTION_REVERTED"]);
			assert.deepEqual(outcomes[1], {
				ok: false,
				error: { code: "EXECUTION_REVERTED", message: "execution reverted: closed", data: CLOSED },
			});
		});

		it("stands behind the whole chain", async () => {
			const opening = await signed(user, { to: GATE, data: `0x${"1".padStart(64, "0")}`, nonce: 1 });
			const targets = [await transfer(user, 0, 1n), opening, await transfer(user, 2, 1n)];
			const outcomes = await run(targets, await signed(searcher, { to: GATE }));
			assert.deepEqual(codes(outcomes), ["ok", "ok", "ok", "ok"]);
		});

		it("may be the chain's own sender's, with the nonce behind it", async () => {
			const targets = [await transfer(user, 0, 1n), await transfer(user, 1, 1n)];
			const paying = { to: PAYS, value: 5n };
			const right = await run(targets, await signed(user, { ...paying, nonce: 2 }));
			assert.deepEqual(codes(right), ["ok", "ok", "ok"]);
			assert.equal(right[2]?.ok && right[2].paid, 5n);
			const low = await run(targets, await signed(user, { ...paying, nonce: 1 }));
			assert.deepEqual(messages(low)[2], "nonce too low: next nonce 2, tx nonce 1");
			const high = await run(targets, await signed(user, { ...paying, nonce: 3 }));
			assert.deepEqual(messages(high)[2], "nonce too high: next nonce 2, tx nonce 3");
		});

		it("must have its own account's nonce where it is another's", async () => {
			const target = await transfer(user, 0, 1n);
			const tx = await signed(counted, { to: SINK, nonce: 4 });
			assert.deepEqual(messages(await run([target], tx, { nonce: 4n })), ["ok", "ok"]);
			assert.deepEqual(messages(await run([target], tx, { nonce: 5n })), [
				"ok",
				"nonce too low: next nonce 5, tx nonce 4",
			]);
			assert.deepEqual(messages(await run([target], tx, { nonce: 3n })), [
				"ok",
				"nonce too high: next nonce 3, tx nonce 4",
			]);
		});

		it("has a higher nonce where an authorization of its sender's takes effect in the target", async () => {
			const authorization = searcher.authorizeSync({ address: PAYS, nonce: 0, chainId: 31337 });
			const target = await signed(user, { to: SINK, type: 4, authorizationList: [authorization] });
			const late = await run([target], await signed(searcher, { to: SINK, nonce: 0 }));
			assert.deepEqual(messages(late), ["ok", "nonce too low: next nonce 1, tx nonce 0"]);
			assert.deepEqual(codes(await run([target], await signed(searcher, { to: SINK, nonce: 1 }))), [
				"ok",
				"ok",
			]);
		});

		it("must pay the base fee and fit into a block", async () => {
			const target = await transfer(user, 0, 1n);
			const cheap = await signed(searcher, { to: SINK, maxFeePerGas: 2n * GWEI });
			assert.deepEqual(codes(await run([target], cheap)), ["ok", "FEE_CAP_TOO_LOW"]);
			const large = await signed(searcher, { to: SINK, gasLimit: block.gasLimit + 1n });
			assert.deepEqual(codes(await run([target], large)), ["ok", "GAS_LIMIT_TOO_HIGH"]);
		});

		it("may spend what its target brings, to the wei", async () => {
			const target = await transfer(user, 0, CAP + 7n, poor.address);
			const exact = await run([target], await signed(poor, { to: PAYS, value: 7n }), { balance: 0n });
			assert.deepEqual(codes(exact), ["ok", "ok"]);
			assert.equal(exact[1]?.ok && exact[1].paid, 7n);
			const above = await run([target], await signed(poor, { to: PAYS, value: 8n }), { balance: 0n });
			const amounts = `balance ${CAP + 7n}, tx cost ${CAP + 8n}, overshot 1`;
			assert.equal(messages(above)[1], `insufficient funds for gas * price + value: ${amounts}`);
		});

		it("has not what it has not, though its target is somebody else's", async () => {
			const target = await transfer(user, 0, 1n);
			const tx = await signed(poor, { to: PAYS, value: 7n });
			const outcomes = await run([target], tx, { balance: 0n });
			const amounts = `balance 0, tx cost ${CAP + 7n}, overshot ${CAP + 7n}`;
			assert.equal(messages(outcomes)[1], `insufficient funds for gas * price + value: ${amounts}`);
		});

		it("fails where its target takes the funds away", async () => {
			const backrun = await signed(drained, { to: PAYS, value: 7n });
			assert.deepEqual(codes(await run([await transfer(user, 0, 1n)], backrun)), ["ok", "ok"]);
			const draining = await signed(user, { to: drained.address });
			const outcomes = await run([draining], backrun);
			assert.deepEqual(codes(outcomes), ["ok", "INSUFFICIENT_FUNDS"]);
			assert.match(messages(outcomes)[1] ?? "", /: balance 0, /);
		});

		it("has what its target's sender has left, where it is the same", async () => {
			const left = 2n * ETHER - ETHER - TRANSFER_FEE;
			const target = await transfer(user, 0, ETHER);
			const exact = await signed(user, { to: PAYS, nonce: 1, value: left - CAP });
			assert.deepEqual(codes(await run([target], exact)), ["ok", "ok"]);
			const above = await signed(user, { to: PAYS, nonce: 1, value: left - CAP + 1n });
			const amounts = `balance ${left}, tx cost ${left + 1n}, overshot 1`;
			const outcomes = await run([target], above);
			assert.equal(messages(outcomes)[1], `insufficient funds for gas * price + value: ${amounts}`);
		});

		it("is not run behind a target that fails", async () => {
			const paying = await signed(searcher, { to: PAYS, value: 7n });
			const failing = await run([await signed(user, { to: GATE })], paying);
			assert.deepEqual(messages(failing), ["execution reverted: closed"]);
			const gap = await run([await transfer(user, 1, 1n)], paying);
			assert.deepEqual(messages(gap), ["nonce too high: next nonce 0, tx nonce 1"]);
			const second = await run([await transfer(user, 0, 1n), await transfer(user, 5, 1n)], paying);
			assert.deepEqual(messages(second), ["ok", "nonce too high: next nonce 1, tx nonce 5"]);
		});

		it("is told why it fails, where the node tells it", async () => {
			const outcomes = await run([await transfer(user, 0, 1n)], await signed(searcher, { to: LOOPS }));
			assert.deepEqual(messages(outcomes), ["ok", "out of gas"]);
		});
	});
}

function payments(outcomes: readonly SimulationOutcome[]): (bigint | null | string)[] {
	return outcomes.map((outcome) => (outcome.ok ? outcome.paid : outcome.error.message));
}
