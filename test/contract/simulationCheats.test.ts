// Backruns that try to tell a simulation from a block, on a real node: what a backrun sees and pays
// in its simulation must be what it sees and pays in the next block behind the same target. On
// go-ethereum too where GETH names one.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { TransactionLike, Wallet } from "ethers";
import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import type { Header } from "../../relay/domain/chain.ts";
import type { BlockContext, SimulationOutcome } from "../../relay/domain/simulation.ts";
import { systemClock } from "../../shared/clock.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import { Slots } from "../../shared/ethereum/slots.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { GETH, startGeth } from "../devnet/gethChain.ts";
import { always, OSAKA } from "../support/forks.ts";
import { CHEATS, payingWhere, readSights, SHOWS_ALL } from "../support/simulationCheats.ts";
import {
	abilitiesOf,
	addressOf,
	backrunRequest,
	ETHER,
	placeContracts,
	requestFor,
	signed,
	simulatorOn,
} from "../support/simulationFixture.ts";

const SLOTS = new Slots({ setMs: 12_000 }, { clock: systemClock });

const COINBASE = "0x00000000000000000000000000000000facade02";
const SINK = addressOf(99);
const SHOWS = addressOf(1);
/** Pays the much that a cheat promises, always: so it can be seen here. */
const HONEST = addressOf(2);
const titles = Object.keys(CHEATS);
const cheatAt = (title: string) => addressOf(100 + titles.indexOf(title));
const CODES: Readonly<Record<string, string>> = {
	[SHOWS]: SHOWS_ALL,
	[HONEST]: payingWhere("6001"),
	...Object.fromEntries(titles.map((title) => [cheatAt(title), payingWhere(CHEATS[title] ?? "")])),
};
const MUCH = 5n * ETHER;

interface Chain extends Omit<DevChain, "fund"> {
	/** Mines these and nothing else, a slot behind the head, for {@link COINBASE}. */
	build(txs: readonly string[]): Promise<void>;
}

async function startAnvil(): Promise<Chain> {
	const chain = await startDevChain();
	await placeContracts(chain, CODES);
	await chain.rpc("anvil_setCoinbase", [COINBASE]);
	const build = async (txs: readonly string[]) => {
		for (const tx of txs) await chain.rpc("eth_sendRawTransaction", [tx]);
		const head = await headOf(chain);
		await chain.rpc("evm_setNextBlockTimestamp", [head.timestamp + 12]);
		await chain.rpc("evm_mine");
	};
	return { ...chain, build };
}

async function startGethChain(): Promise<Chain> {
	const alloc = Object.fromEntries(
		Object.entries(CODES).map(([address, code]) => [address.slice(2), { code, balance: "0x0" }]),
	);
	const chain = await startGeth({ alloc });
	const build = async (txs: readonly string[]) => {
		const random = `0x${"5a".repeat(32)}`;
		await chain.mine({ txs, coinbase: COINBASE, prevRandao: random, beaconRoot: random });
	};
	return { ...chain, build };
}

async function headOf(chain: Pick<DevChain, "rpc">): Promise<Header> {
	const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	return {
		number: Number(head.number),
		hash: String(head.hash),
		parentHash: String(head.parentHash),
		timestamp: Number(head.timestamp),
		gasLimit: BigInt(head.gasLimit ?? 0),
		gasUsed: BigInt(head.gasUsed ?? 0),
		baseFee: BigInt(head.baseFeePerGas ?? 0),
		excessBlobGas: BigInt(head.excessBlobGas ?? 0),
		blobGasUsed: BigInt(head.blobGasUsed ?? 0),
		miner: String(head.miner),
	};
}

const NODES = { anvil: startAnvil, ...(GETH === undefined ? {} : { "go-ethereum": startGethChain }) };

for (const [name, start] of Object.entries(NODES)) {
	describe(`a backrun on ${name}`, () => {
		let chain: Chain;
		let node: JsonRpcClient;
		let user: Wallet;
		let searcher: Wallet;
		let nonce = 0;

		before(async () => {
			chain = await start();
			node = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
			[user, searcher] = [chain.wallet(0), chain.wallet(1)];
			// Real coinbases hold something, and the block behind a first one has a head with a hash in
			// the history.
			const gift = await signed(user, { to: COINBASE, value: ETHER });
			await chain.build([bytesToHex(gift.raw)]);
			await chain.build([]);
			nonce = 1;
		});
		after(async () => {
			await node?.close();
			await chain?.stop();
		});

		/** Simulates a target and a backrun behind it, and mines both. */
		async function both(fields: TransactionLike) {
			const head = await headOf(chain);
			const next = await nextBlockReader({ slots: SLOTS }, { node, forks: always(OSAKA) })(head);
			const block = { ...next, stateBlock: head.number, feeRecipient: COINBASE };
			const target = await signed(user, { to: SINK, value: 5n, nonce });
			const backrun = await signed(searcher, { value: MUCH, nonce: nonce - 1, ...fields });
			const simulated = await simulate(block, target, backrun);
			const held = await balance();
			await chain.build([bytesToHex(target.raw), bytesToHex(backrun.raw)]);
			nonce += 1;
			return { simulated, backrun, paid: (await balance()) - held - (await tips([target, backrun])) };
		}

		async function simulate(
			block: BlockContext,
			target: DecodedTransaction,
			backrun: DecodedTransaction,
		): Promise<SimulationOutcome | undefined> {
			const abilities = await abilitiesOf(node);
			const funds = BigInt(String(await chain.rpc("eth_getBalance", [searcher.address, "latest"])));
			const own = BigInt(String(await chain.rpc("eth_getBalance", [user.address, "latest"])));
			const request = requestFor(block, own, [target]);
			const accounts = new Map([[target.from, { nonce: target.nonce, balance: own }]]);
			const all = backrunRequest({ ...request, accounts }, backrun, funds, backrun.nonce);
			const outcomes = await simulatorOn(node, abilities).simulate(all);
			assert.equal(outcomes.length, 2);
			return outcomes[1];
		}

		const balance = async () => BigInt(String(await chain.rpc("eth_getBalance", [COINBASE, "latest"])));

		async function tips(txs: readonly DecodedTransaction[]): Promise<bigint> {
			const { baseFee } = await headOf(chain);
			let sum = 0n;
			for (const { hash } of txs) {
				const receipt = (await chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
				sum += BigInt(receipt.gasUsed ?? 0) * (BigInt(receipt.effectiveGasPrice ?? 0) - baseFee);
			}
			return sum;
		}

		it("sees in a simulation what it sees in the block, but for what nobody can know", async () => {
			const { simulated, backrun } = await both({ to: SHOWS, value: 0n, data: `0x${"11".repeat(32)}` });
			assert.ok(simulated?.ok === false);
			const trace = await chain.rpc("debug_traceTransaction", [backrun.hash, { tracer: "callTracer" }]);
			const real = readSights((trace as { output: string }).output);
			const seen = readSights(simulated.error.data ?? "");
			const unknown = { prevRandao: 0n, beaconRoot: 0n };
			assert.deepEqual({ ...seen, ...unknown }, { ...real, ...unknown });
			assert.notEqual(seen.prevRandao, 0n);
			assert.equal(seen.beaconRoot === 0n, real.beaconRoot === 0n);
			assert.notEqual(seen.hashOfHead, 0n);
			assert.notEqual(seen.coinbaseBalance, 0n);
			assert.notEqual(seen.baseFee, 0n);
		});

		it("that pays much where it is sent is worth it", async () => {
			const { simulated, paid } = await both({ to: HONEST });
			assert.deepEqual([simulated?.ok === true && simulated.paid, paid], [MUCH, MUCH]);
		});

		for (const title of titles) {
			it(`that pays much ${title} is worth the wei that it pays in the block`, async () => {
				const head = await headOf(chain);
				const told = await toldRandomness();
				const words = [told, head.gasLimit, BigInt(head.number + 1), BigInt(head.timestamp + 12)];
				const data = `0x${words.map((word) => word.toString(16).padStart(64, "0")).join("")}`;
				const { simulated, paid } = await both({ to: cheatAt(title), data });
				assert.deepEqual([simulated?.ok === true && simulated.paid, paid], [1n, 1n]);
			});
		}

		/** The randomness of its block, as the error of an earlier bid revealed it. */
		async function toldRandomness(): Promise<bigint> {
			const head = await headOf(chain);
			const next = await nextBlockReader({ slots: SLOTS }, { node, forks: always(OSAKA) })(head);
			const block = { ...next, stateBlock: head.number, feeRecipient: COINBASE };
			const target = await signed(user, { to: SINK, value: 5n, nonce });
			const outcome = await simulate(block, target, await signed(searcher, { to: SHOWS, nonce: nonce - 1 }));
			return readSights(outcome?.ok === false ? (outcome.error.data ?? "") : "").prevRandao ?? 0n;
		}
	});
}
