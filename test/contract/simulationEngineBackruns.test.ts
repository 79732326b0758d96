// Contract of the engines that run chains, for backruns on a real node: what a backrun pays to the fee recipient must
// be exact to the wei, however it pays, and the same as what the coinbase gets when both are mined for real.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { TransactionLike, Wallet } from "ethers";
import type { BlockContext, SimulationOutcome } from "../../relay/domain/simulation.ts";
import { ENGINES } from "../../relay/simulation/engines/index.ts";
import { systemClock } from "../../shared/clock.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import * as contracts from "../support/simulationContracts.ts";
import {
	addressOf,
	backrunRequest,
	ETHER,
	fundedWallet,
	GWEI,
	nextBlock,
	placeContracts,
	requestFor,
	signed,
	simulatorOn,
} from "../support/simulationScene.ts";

const SINK = addressOf(99);
const COINBASE = "0x00000000000000000000000000000000facade01";
const PAYS = addressOf(1);
const PAYS_AND_REVERTS = addressOf(2);
const DELEGATES = addressOf(6);
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
};

/** An odd number of wei: nothing else comes to it. */
const BID = 1_234_567_890_123_457n;

interface Row {
	/** With value {@link BID} unless it says otherwise. */
	readonly fields: TransactionLike;
	readonly paid: bigint;
	/** anvil's eth_simulateV1 takes no creations. */
	readonly creation?: true;
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
	"the creation that it is": { fields: { data: contracts.PAYS_COINBASE }, paid: BID, creation: true },
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

const sequential = ENGINES.filter((engine) => engine.sequences);
const SETS = [...sequential.map((engine) => [engine]), ENGINES];

for (const engines of SETS) {
	describe(`what a backrun pays, by ${engines.map((engine) => engine.name).join(", ")}`, () => {
		const isSimulateV1 = engines.length === 1 && engines[0]?.name === "eth_simulateV1";
		let chain: DevChain;
		let node: JsonRpcClient;
		let block: BlockContext;
		let user: Wallet;
		let searcher: Wallet;
		before(async () => {
			chain = await startDevChain();
			node = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
			await placeContracts(chain, PLACED);
			await chain.rpc("anvil_setCoinbase", [COINBASE]);
			user = await fundedWallet(chain, ETHER);
			searcher = await fundedWallet(chain, ETHER);
			// Nobody has heard of the coinbase, so that it must be funded to be like a real one.
			await chain.rpc("anvil_setBalance", [COINBASE, "0x1"]);
			await chain.rpc("evm_mine");
			block = await nextBlock(chain);
		});
		after(async () => {
			await node.close();
			await chain.stop();
		});

		async function simulate(target: DecodedTransaction, backrun: DecodedTransaction, fixed = false) {
			const request = backrunRequest(requestFor(block, ETHER, [target]), backrun, ETHER);
			return simulatorOn(node, engines, fixed).simulate(request);
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

		for (const [title, { fields, paid, creation }] of Object.entries(ROWS)) {
			it(`${title}: ${paid} wei`, async () => {
				const target = await signed(user, { to: SINK, value: 5n });
				const backrun = await signed(searcher, { value: BID, ...fields });
				const outcomes = await simulate(target, backrun);
				if (creation && isSimulateV1) {
					assert.deepEqual(codes(outcomes), ["NODE_UNAVAILABLE"]);
					return;
				}
				assert.deepEqual(payments(outcomes), [0n, paid]);
				assert.deepEqual(payments(await simulate(target, backrun, true)), [0n, paid]);
				assert.equal(await mined([target, backrun]), paid);
			});
		}

		it("is not what its target pays", async () => {
			const target = await signed(user, { to: COINBASE, value: 7n });
			const outcomes = await simulate(target, await signed(searcher, { to: SINK }));
			assert.deepEqual(payments(outcomes), [7n, 0n]);
			const both = await simulate(target, await signed(searcher, { to: PAYS, value: BID }));
			assert.deepEqual(payments(both), [7n, BID]);
		});

		it("is told of a backrun without a chain", async () => {
			const tx = await signed(searcher, { to: PAYS, value: BID });
			const request = { ...requestFor(block, 0n, []), sender: user.address.toLowerCase() };
			const outcomes = await simulatorOn(node, engines).simulate(backrunRequest(request, tx, ETHER));
			assert.deepEqual(payments(outcomes), [BID]);
		});

		it("is told of a chain as its transfers show it", async () => {
			const txs = [
				await signed(user, { to: COINBASE, value: 3n }),
				await signed(user, { to: addressOf(3), value: 4n, nonce: 1 }),
				await signed(user, { to: addressOf(4), value: 5n, nonce: 2 }),
			];
			const outcomes = await simulatorOn(node, engines).simulate(requestFor(block, ETHER, txs));
			assert.deepEqual(payments(outcomes), [3n, 4n, 0n]);
		});
	});
}

function codes(outcomes: readonly SimulationOutcome[]): string[] {
	return outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.error.code));
}

function payments(outcomes: readonly SimulationOutcome[]): (bigint | null | string)[] {
	return outcomes.map((outcome) => (outcome.ok ? outcome.paid : outcome.error.message));
}
