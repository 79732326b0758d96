// Tests the contract of the engines that run chains, on a real node: each transaction finds the balances (to the
// wei), storage, code and nonces that those before it left.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Wallet } from "ethers";
import type { BlockContext, SimulationOutcome } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import * as contracts from "../support/contracts.ts";
import {
	addressOf,
	codes,
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
const COUNTS = addressOf(1);
const CLEARS = addressOf(2);
const PAYS_CALLER = addressOf(3);
const EMITS = addressOf(4);
const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
/** What a plain transfer pays at the tests' base fee of 3 gwei and tip of 1. */
const TRANSFER_FEE = 21_000n * 4n * GWEI;
/** The most that a transfer with a limit of 21,000 can cost at a cap of 5 gwei. */
const TRANSFER_CAP = 21_000n * 5n * GWEI;

for (const [way, abilities, name, start] of WAYS_ON_NODES) {
	describe(`chains by ${way} on ${name}`, () => {
		let chain: SimulationChain;
		let node: SimulationNode;
		let block: BlockContext;
		let sender: Wallet;
		let calls = 0;
		before(async () => {
			chain = await start(`simulationChainsBy${way.replace(/\W/g, "")}`);
			({ node } = chain);
			await placeContracts(chain, {
				[COUNTS]: contracts.COUNTS,
				[CLEARS]: contracts.CLEARS,
				[PAYS_CALLER]: contracts.PAYS_CALLER,
				[EMITS]: contracts.EMITS,
			});
			await chain.rpc("anvil_setStorageAt", [CLEARS, "0x0", `0x${"7".padStart(64, "0")}`]);
			await chain.rpc("anvil_setBalance", [PAYS_CALLER, `0x${(5n * ETHER).toString(16)}`]);
			sender = await fundedWallet(chain, ETHER);
			block = await nextBlock(chain);
		});
		after(() => chain.stop());

		async function simulate(
			txs: readonly DecodedTransaction[],
			options: { balance?: bigint; block?: BlockContext; mayWait?: boolean } = {},
		): Promise<readonly SimulationOutcome[]> {
			calls = 0;
			const counted = {
				call(...args: Parameters<SimulationNode["call"]>) {
					calls += 1;
					return node.call(...args);
				},
				batch(...args: Parameters<SimulationNode["batch"]>) {
					calls += 1;
					return node.batch(...args);
				},
			};
			const { mayWait = false } = options;
			const request = requestFor(options.block ?? block, options.balance ?? ETHER, txs);
			return simulatorOn(counted, abilities).simulate({ ...request, mayWait });
		}

		const transfer = (nonce: number, value: bigint) =>
			signed(sender, { to: SINK, nonce, value, gasLimit: 21_000n });

		const count = (nonce: number, expected: number) =>
			signed(sender, { to: COUNTS, nonce, data: `0x${expected.toString(16).padStart(64, "0")}` });

		it("spends what an earlier transaction brought in", async () => {
			const txs = [await signed(sender, { to: PAYS_CALLER, nonce: 0 }), await transfer(1, 5n * ETHER)];
			assert.deepEqual(codes(await simulate(txs)), ["ok", "ok"]);
			assert.deepEqual(codes(await simulate([await transfer(0, 5n * ETHER)])), ["INSUFFICIENT_FUNDS"]);
		});

		it("knows the balance behind each transaction to the wei", async () => {
			const left = ETHER - ETHER / 2n - TRANSFER_FEE;
			const exact = [await transfer(0, ETHER / 2n), await transfer(1, left - TRANSFER_CAP)];
			assert.deepEqual(codes(await simulate(exact)), ["ok", "ok"]);
			const above = [await transfer(0, ETHER / 2n), await transfer(1, left - TRANSFER_CAP + 1n)];
			const balances = `balance ${left}, tx cost ${left + 1n}, overshot 1`;
			const message = `insufficient funds for gas * price + value: ${balances}`;
			assert.deepEqual((await simulate(above))[1], {
				ok: false,
				error: { code: "INSUFFICIENT_FUNDS", message },
			});
		});

		it("counts what legacy and blob transactions pay", async () => {
			const legacy = await signed(sender, { type: 0, to: SINK, gasPrice: 7n * GWEI, gasLimit: 21_000n });
			const plain = await signed(sender, { to: SINK, nonce: 1, gasLimit: 21_000n });
			const blob: DecodedTransaction = {
				...plain,
				type: 3,
				maxFeePerBlobGas: 10n,
				blobVersionedHashes: [`0x01${"11".repeat(31)}`, `0x01${"22".repeat(31)}`],
			};
			const left = ETHER - 21_000n * 7n * GWEI - TRANSFER_FEE - 2n * 131_072n * block.blobBaseFee;
			const exact = [legacy, blob, await transfer(2, left - TRANSFER_CAP)];
			assert.deepEqual(codes(await simulate(exact)), ["ok", "ok", "ok"]);
			const above = [legacy, blob, await transfer(2, left - TRANSFER_CAP + 1n)];
			assert.deepEqual(codes(await simulate(above)), ["ok", "ok", "INSUFFICIENT_FUNDS"]);
		});

		it("finds the one transaction of a long chain that the node won't execute", async () => {
			const txs = await Promise.all(
				Array.from({ length: 20 }, (_, i) => transfer(i, i === 12 ? 2n * ETHER : 1n)),
			);
			const outcomes = await simulate(txs);
			assert.deepEqual(codes(outcomes), [...Array(12).fill("ok"), "INSUFFICIENT_FUNDS"]);
			const last = outcomes[12];
			assert.match(last?.ok === false ? last.error.message : "", /balance \d+, tx cost \d+, overshot \d+$/);
			// By halves where the node rejects all at once; two traces a transaction where it is asked one by one.
			assert.ok(calls <= (way === "eth_simulateV1" ? 6 : 26), `${calls} calls`);
		});

		it("stops at the first that reverts, whatever the node would say of those behind it", async () => {
			const txs = [await count(0, 1), await count(1, 3), await transfer(2, 2n * ETHER), await count(3, 2)];
			assert.deepEqual(codes(await simulate(txs)), ["ok", "EXECUTION_REVERTED"]);
		});

		it("carries storage on", async () => {
			const txs = [await count(0, 1), await count(1, 2), await transfer(2, 1n), await count(3, 3)];
			assert.deepEqual(codes(await simulate(txs)), ["ok", "ok", "ok", "ok"]);
		});

		it("carries on storage that was set to zero", async () => {
			const check = await signed(sender, { to: CLEARS, nonce: 0, data: "0x01" });
			assert.deepEqual(codes(await simulate([check])), ["EXECUTION_REVERTED"]);
			const txs = [
				await signed(sender, { to: CLEARS, nonce: 0 }),
				await signed(sender, { to: CLEARS, nonce: 1, data: "0x01" }),
			];
			assert.deepEqual(codes(await simulate(txs)), ["ok", "ok"]);
		});

		it("carries on a delegation of the sender, which takes a nonce of its own", async () => {
			const authorization = sender.authorizeSync({ address: EMITS, nonce: 1, chainId: 31337 });
			const delegating = await signed(sender, { to: SINK, type: 4, authorizationList: [authorization] });
			const self = { to: sender.address };
			const right = await simulate([delegating, await signed(sender, { ...self, nonce: 2 })]);
			assert.deepEqual(events(right), [false, true]);
			const wrong = await simulate([delegating, await signed(sender, { ...self, nonce: 1 })]);
			const error = { code: "NONCE_TOO_LOW", message: "nonce too low: next nonce 2, tx nonce 1" };
			assert.deepEqual(wrong[1], { ok: false, error });
		});

		it("carries on a delegation of another account, and takes no nonce for it", async () => {
			const other = await fundedWallet(chain, 0n);
			const authorization = other.authorizeSync({ address: EMITS, nonce: 0, chainId: 0 });
			const txs = [
				await signed(sender, { to: SINK, type: 4, authorizationList: [authorization] }),
				await signed(sender, { to: other.address, nonce: 1 }),
			];
			assert.deepEqual(events(await simulate(txs, { block: await nextBlock(chain) })), [false, true]);
		});

		it("carries on that a delegation is taken back", async () => {
			const other = await fundedWallet(chain, 0n);
			await placeContracts(chain, { [other.address]: `0xef0100${EMITS.slice(2)}` });
			const authorization = other.authorizeSync({ address: ZERO_ADDRESS, nonce: 0, chainId: 31337 });
			const txs = [
				await signed(sender, { to: other.address }),
				await signed(sender, { to: SINK, nonce: 1, type: 4, authorizationList: [authorization] }),
				await signed(sender, { to: other.address, nonce: 2 }),
			];
			assert.deepEqual(events(await simulate(txs, { block: await nextBlock(chain) })), [true, false, false]);
		});

		it("runs a chain that would not fit into one block", async () => {
			const small = { ...block, gasLimit: 250_000n };
			const txs = [await count(0, 1), await count(1, 2), await count(2, 3)];
			assert.deepEqual(codes(await simulate(txs, { block: small, mayWait: true })), ["ok", "ok", "ok"]);
		});

		it("keeps the relay's own rules within a chain", async () => {
			const cheap = await signed(sender, { to: SINK, nonce: 1, maxFeePerGas: 2n * GWEI });
			assert.deepEqual(codes(await simulate([await transfer(0, 1n), cheap, await transfer(2, 1n)])), [
				"ok",
				"FEE_CAP_TOO_LOW",
			]);
			assert.deepEqual(codes(await simulate([await transfer(0, 1n), await transfer(2, 1n)])), [
				"ok",
				"NONCE_GAP",
			]);
		});
	});
}

function events(outcomes: readonly SimulationOutcome[]): (boolean | null | string)[] {
	return outcomes.map((outcome) => (outcome.ok ? outcome.emitsEvents : outcome.error.code));
}
