// Contract of the engines that run chains, for backruns on a real node: what a backrun pays to the fee recipient must
// be exact to the wei, however it pays, and the same as what the coinbase gets when both are mined for real.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { TransactionLike, Wallet } from "ethers";
import type { BlockContext, SimulationOutcome } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import * as contracts from "../support/contracts.ts";
import {
	addressOf,
	backrunRequest,
	ETHER,
	fundedWallet,
	GWEI,
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
};

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
	describe(`what a backrun pays, by ${way} on ${name}`, () => {
		let chain: SimulationChain;
		let node: SimulationNode;
		let block: BlockContext;
		let user: Wallet;
		let searcher: Wallet;
		before(async () => {
			chain = await start(`simulationBackrunsBy${way.replace(/\W/g, "")}`);
			({ node } = chain);
			await placeContracts(chain, PLACED);
			await chain.rpc("anvil_setCoinbase", [COINBASE]);
			user = await fundedWallet(chain, ETHER);
			searcher = await fundedWallet(chain, ETHER);
			// Nobody has heard of the coinbase, so that it must be funded to be like a real one.
			await chain.rpc("anvil_setBalance", [COINBASE, "0x1"]);
			await chain.rpc("evm_mine");
			block = await nextBlock(chain);
		});
		after(() => chain.stop());

		async function simulate(target: DecodedTransaction, backrun: DecodedTransaction) {
			const request = backrunRequest(requestFor(block, ETHER, [target]), backrun, ETHER);
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
			it(`${title}: ${paid} wei`, async () => {
				const target = await signed(user, { to: SINK, value: 5n });
				const backrun = await signed(searcher, { value: BID, ...fields });
				const outcomes = await simulate(target, backrun);
				assert.deepEqual(payments(outcomes), [null, paid]);
				assert.equal(await mined([target, backrun]), paid);
			});
		}

		it("is not what its target pays", async () => {
			const target = await signed(user, { to: COINBASE, value: 7n });
			const outcomes = await simulate(target, await signed(searcher, { to: SINK }));
			assert.deepEqual(payments(outcomes), [null, 0n]);
			const both = await simulate(target, await signed(searcher, { to: PAYS, value: BID }));
			assert.deepEqual(payments(both), [null, BID]);
		});

		it("is what a coinbase keeps that gives half of it back", async () => {
			const own = { ...block, feeRecipient: GENEROUS };
			const backrun = await signed(searcher, { to: GENEROUS, value: BID });
			const target = await signed(user, { to: SINK, value: 5n });
			const request = backrunRequest(requestFor(own, ETHER, [target]), backrun, ETHER);
			assert.deepEqual(payments(await simulatorOn(node, abilities).simulate(request)), [
				null,
				BID - BID / 2n,
			]);
		});

		it("is nothing where the coinbase pays itself or others, whatever its gas costs", async () => {
			const own = { ...block, feeRecipient: searcher.address.toLowerCase() };
			const target = await signed(user, { to: SINK, value: 5n });
			for (const to of [PAYS, SINK]) {
				const backrun = await signed(searcher, { to, value: BID });
				const request = backrunRequest(requestFor(own, ETHER, [target]), backrun, ETHER);
				assert.deepEqual(payments(await simulatorOn(node, abilities).simulate(request)), [null, 0n]);
			}
		});

		it("is told of a backrun without a chain", async () => {
			const tx = await signed(searcher, { to: PAYS, value: BID });
			const request = backrunRequest(requestFor(block, 0n, []), tx, ETHER);
			const outcomes = await simulatorOn(node, abilities).simulate(request);
			assert.deepEqual(payments(outcomes), [BID]);
		});
	});
}

function payments(outcomes: readonly SimulationOutcome[]): (bigint | null | string)[] {
	return outcomes.map((outcome) => (outcome.ok ? outcome.paid : outcome.error.message));
}
