// Contract of the engines that run chains, for backruns on a real node: what a backrun pays to the
// fee recipient must be exact to the wei, however it pays, and the same as what the coinbase gets
// when both are mined for real. It must find what its target left, pass or fail by that, and keep
// the relay's own rules of nonces and funds.

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
/** The fee of a plain transfer at the tests' base fee of 3 gwei and tip of 1. */
const TRANSFER_FEE = 21_000n * 4n * GWEI;

/** The state that a backrun runs in: its sender's account, and the recipient of the fees. */
type Around = Partial<SimulatedAccount> & { readonly feeRecipient?: string };

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
		/** An account whose code pays its ether to the caller. */
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

		/** Backrun's sender: nonce 0 and an ether unless said. */
		function run(
			targets: readonly DecodedTransaction[],
			tx: DecodedTransaction,
			{ nonce = 0n, balance = ETHER, feeRecipient = block.feeRecipient }: Around = {},
		): Promise<readonly SimulationOutcome[]> {
			const request = requestFor({ ...block, feeRecipient }, 2n * ETHER, targets);
			return simulatorOn(node, abilities).simulate(backrunRequest(request, tx, balance, nonce));
		}

		const transfer = (wallet: Wallet, nonce: number, value: bigint, to = SINK) =>
			signed(wallet, { to, nonce, value, gasLimit: 21_000n });

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
				assert.deepEqual(payments(await run([target], backrun)), [null, paid]);
				// Once on each node: what is mined does not depend on how it was simulated.
				if (way === "eth_simulateV1") assert.equal(await mined([target, backrun]), paid);
			});
		}

		it("pays not what its target pays", async () => {
			const target = await signed(user, { to: COINBASE, value: 7n });
			for (const [to, value, paid] of [
				[SINK, 0n, 0n],
				[PAYS, BID, BID],
			] as const) {
				assert.deepEqual(payments(await run([target], await signed(searcher, { to, value }))), [null, paid]);
			}
		});

		it("pays what the coinbase keeps: one that gives half back, or that sends it itself, whatever its gas costs", async () => {
			const itself = searcher.address.toLowerCase();
			const target = await signed(user, { to: SINK, value: 5n });
			for (const [feeRecipient, to, value, paid] of [
				[GENEROUS, GENEROUS, BID, BID - BID / 2n],
				[itself, PAYS, BID, 0n],
				[itself, SINK, BID, 0n],
				[itself, PAYS_CALLER, 0n, 7n],
			] as const) {
				const outcomes = await run([target], await signed(searcher, { to, value }), { feeRecipient });
				assert.deepEqual(payments(outcomes), [null, paid]);
			}
		});

		it("pays without a chain, too", async () => {
			const tx = await signed(searcher, { to: PAYS, value: BID });
			const request = backrunRequest(requestFor(block, 0n, []), tx, ETHER);
			const outcomes = await simulatorOn(node, abilities).simulate(request);
			assert.deepEqual(payments(outcomes), [BID]);
		});

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

		it("has the next nonce of its sender, who may be the chain's own", async () => {
			const own = [await transfer(user, 0, 1n), await transfer(user, 1, 1n)];
			const paying = { to: PAYS, value: 5n };
			const right = await run(own, await signed(user, { ...paying, nonce: 2 }));
			assert.deepEqual(payments(right), [null, null, 5n]);
			for (const [nonce, said] of [
				[1, "nonce too low: next nonce 2, tx nonce 1"],
				[3, "nonce too high: next nonce 2, tx nonce 3"],
			] as const) {
				assert.equal(messages(await run(own, await signed(user, { ...paying, nonce })))[2], said);
			}
			const target = await transfer(user, 0, 1n);
			const tx = await signed(counted, { to: SINK, nonce: 4 });
			for (const [nonce, said] of [
				[4n, "ok"],
				[5n, "nonce too low: next nonce 5, tx nonce 4"],
				[3n, "nonce too high: next nonce 3, tx nonce 4"],
			] as const) {
				assert.deepEqual(messages(await run([target], tx, { nonce })), ["ok", said]);
			}
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

		it("may spend what its target brings, to the wei, and no more", async () => {
			const bringing = await transfer(user, 0, CAP + 7n, poor.address);
			const other = await transfer(user, 0, 1n);
			for (const [target, value, said] of [
				[bringing, 7n, "ok"],
				[bringing, 8n, lacking(CAP + 7n, CAP + 8n)],
				[other, 7n, lacking(0n, CAP + 7n)],
			] as const) {
				const outcomes = await run([target], await signed(poor, { to: PAYS, value }), { balance: 0n });
				assert.deepEqual(messages(outcomes), ["ok", said]);
				if (said === "ok") assert.deepEqual(payments(outcomes), [null, value]);
			}
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
			assert.equal(messages(await run([target], above))[1], lacking(left, left + 1n));
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

		it("returns why it fails, if the node reports it", async () => {
			const outcomes = await run([await transfer(user, 0, 1n)], await signed(searcher, { to: LOOPS }));
			assert.deepEqual(messages(outcomes), ["ok", "out of gas"]);
		});
	});
}

function lacking(balance: bigint, cost: bigint): string {
	const amounts = `balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`;
	return `insufficient funds for gas * price + value: ${amounts}`;
}

function payments(outcomes: readonly SimulationOutcome[]): (bigint | null | string)[] {
	return outcomes.map((outcome) => (outcome.ok ? outcome.paid : outcome.error.message));
}
