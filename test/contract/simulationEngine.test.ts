// Contract of the ways to simulate, on a real node: the same transactions must have the same
// outcomes by all of them, to the code and the message; and in a chain each finds the balances (to
// the wei), storage, code and nonces that those before it left.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { getCreateAddress, type TransactionLike, type Wallet } from "ethers";
import type { BlockContext, SimulationOutcome } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
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

const CUSTOM = "0xdeadbeef0000000000000000000000000000000000000000000000000000000000000007";
const LONG = `0xdeadbeef${"ab".repeat(10_000)}`;

const EMITS = addressOf(1);
const EMITS_AND_REVERTS = addressOf(2);
const SHOWS = addressOf(3);
const COUNTS = addressOf(20);
const CLEARS = addressOf(21);
const PAYS_CALLER = addressOf(22);
const SINK = addressOf(99);
const PLACED: Readonly<Record<string, string>> = {
	[EMITS]: contracts.EMITS,
	[EMITS_AND_REVERTS]: contracts.EMITS_AND_REVERTS,
	[SHOWS]: contracts.SHOWS_SURROUNDINGS,
	[addressOf(4)]: contracts.calling(EMITS),
	[addressOf(5)]: contracts.calling(EMITS_AND_REVERTS),
	[addressOf(6)]: contracts.revertingWith(contracts.errorString("too late")),
	[addressOf(7)]: contracts.revertingWith(contracts.panic(0x11)),
	[addressOf(8)]: contracts.revertingWith(CUSTOM),
	[addressOf(9)]: contracts.REVERTS,
	[addressOf(10)]: contracts.LOOPS,
	[addressOf(11)]: contracts.INVALID,
	[addressOf(12)]: contracts.UNDERFLOWS,
	[addressOf(13)]: contracts.JUMPS_ASTRAY,
	[addressOf(14)]: contracts.revertingWith(LONG),
	[COUNTS]: contracts.COUNTS,
	[CLEARS]: contracts.CLEARS,
	[PAYS_CALLER]: contracts.PAYS_CALLER,
};
const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
/** The fee of a plain transfer at the tests' base fee of 3 gwei and tip of 1. */
const TRANSFER_FEE = 21_000n * 4n * GWEI;
/** The most that a transfer with a limit of 21,000 can cost at a cap of 5 gwei. */
const TRANSFER_CAP = 21_000n * 5n * GWEI;

interface Row {
	readonly fields: TransactionLike;
	readonly emits?: boolean;
	readonly gasUsed?: bigint;
	readonly fails?: readonly [code: string, message: string, data?: string];
}

const ROWS: Readonly<Record<string, Row>> = {
	"plain transfer": { fields: { to: SINK, value: 5n }, emits: false, gasUsed: 21_000n },
	"legacy transfer": {
		fields: { to: SINK, gasPrice: 5n * GWEI, type: 0 },
		emits: false,
		gasUsed: 21_000n,
	},
	"transfer with an access list": {
		fields: {
			type: 1,
			to: SINK,
			gasPrice: 5n * GWEI,
			accessList: [{ address: EMITS, storageKeys: [] }],
		},
		emits: false,
		gasUsed: 23_400n,
	},
	"an event": { fields: { to: EMITS }, emits: true, gasUsed: 21_379n },
	"an event of a call in it": { fields: { to: addressOf(4) }, emits: true },
	"an event that is undone": { fields: { to: addressOf(5) }, emits: false },
	"Error(string)": {
		fields: { to: addressOf(6) },
		fails: ["EXECUTION_REVERTED", "execution reverted: too late", contracts.errorString("too late")],
	},
	"Panic(uint256)": {
		fields: { to: addressOf(7) },
		fails: [
			"EXECUTION_REVERTED",
			"execution reverted: panic 0x11 (arithmetic overflow)",
			contracts.panic(0x11),
		],
	},
	"custom error": {
		fields: { to: addressOf(8) },
		fails: ["EXECUTION_REVERTED", "execution reverted: custom error 0xdeadbeef", CUSTOM],
	},
	"revert data beyond the limit": {
		fields: { to: addressOf(14) },
		fails: ["EXECUTION_REVERTED", "execution reverted: custom error 0xdeadbeef", LONG.slice(0, 2 + 2 * 4096)],
	},
	"revert without data": {
		fields: { to: addressOf(9) },
		fails: ["EXECUTION_REVERTED", "execution reverted"],
	},
	"out of gas": { fields: { to: addressOf(10) }, fails: ["OUT_OF_GAS", "out of gas"] },
	"invalid opcode": {
		fields: { to: addressOf(11) },
		fails: ["INVALID_OPCODE", "invalid opcode"],
	},
	"stack underflow": {
		fields: { to: addressOf(12) },
		fails: ["EXECUTION_FAILED", "execution failed: stack underflow"],
	},
	"jump to nowhere": {
		fields: { to: addressOf(13) },
		fails: ["EXECUTION_FAILED", "execution failed: invalid jump destination"],
	},
	"gas below the intrinsic gas": {
		fields: { to: SINK, gasLimit: 20_999n },
		fails: ["OUT_OF_GAS", "out of gas: intrinsic gas too low"],
	},
	creation: { fields: { data: contracts.deploying(contracts.EMITS) }, emits: false },
	"creation that reverts": {
		fields: { data: contracts.revertingWith(contracts.errorString("no")) },
		fails: ["EXECUTION_REVERTED", "execution reverted: no", contracts.errorString("no")],
	},
	"creation that costs too much gas": {
		fields: { data: contracts.deploying(`0x${"00".repeat(2_000)}`) },
		fails: ["OUT_OF_GAS", "out of gas"],
	},
	"creation of code that starts with 0xEF": {
		fields: { data: contracts.deploying("0xef") },
		fails: ["EXECUTION_FAILED", "execution failed: contract code starts with 0xEF"],
	},
};

for (const [way, abilities, name, start] of WAYS_ON_NODES) {
	describe(`simulation by ${way} on ${name}`, () => {
		let chain: SimulationChain;
		let node: SimulationNode;
		let block: BlockContext;
		/** A wallet on the chain that has one ether, and sends only what its test sends. */
		let sender: Wallet;
		let calls = 0;
		before(async () => {
			chain = await start(`simulationBy${way.replace(/\W/g, "")}`);
			({ node } = chain);
			await placeContracts(chain, PLACED);
			await chain.rpc("anvil_setStorageAt", [CLEARS, "0x0", `0x${"7".padStart(64, "0")}`]);
			await chain.rpc("anvil_setBalance", [PAYS_CALLER, `0x${(5n * ETHER).toString(16)}`]);
			sender = await fundedWallet(chain, ETHER);
			block = await nextBlock(chain);
		});
		after(() => chain.stop());

		const simulator = () => simulatorOn(node, abilities);

		for (const [title, row] of Object.entries(ROWS)) {
			it(title, async () => {
				const tx = await signed(chain.wallet(0), row.fields);
				const outcomes = await simulator().simulate(requestFor(block, 10_000n * ETHER, [tx]));
				assert.equal(outcomes.length, 1);
				checkRow(row, outcomes[0]);
			});
		}

		function checkRow(row: Row, outcome: SimulationOutcome | undefined): void {
			if (row.fails !== undefined) {
				const [code, message, data] = row.fails;
				const error = data === undefined ? { code, message } : { code, message, data };
				assert.deepEqual(outcome, { ok: false, error });
				return;
			}
			assert.ok(outcome?.ok);
			assert.equal(outcome.emitsEvents, row.emits);
			assert.equal(outcome.paid, null);
			if (row.gasUsed !== undefined) assert.equal(outcome.gasUsed, row.gasUsed);
		}

		it("shows the transaction the next block, and the price that it pays", async () => {
			const tx = await signed(chain.wallet(0), { to: SHOWS });
			const [outcome] = await simulator().simulate(requestFor(block, 10_000n * ETHER, [tx]));
			assert.ok(outcome !== undefined && !outcome.ok);
			assert.deepEqual(contracts.readSurroundings(outcome.error.data ?? ""), {
				coinbase: BigInt(block.feeRecipient),
				coinbaseBalance: 0n,
				timestamp: BigInt(block.timestamp),
				number: BigInt(block.number),
				baseFee: block.baseFee,
				gasLimit: block.gasLimit,
				gasPrice: block.baseFee + GWEI,
				senderBalance: 10_000n * ETHER - 200_000n * (block.baseFee + GWEI),
			});
		});

		it("goes on behind what may fail, with the nonces and the balances that it leaves", async () => {
			const [one, other] = [chain.wallet(0), chain.wallet(1)];
			const failing = await signed(one, { to: addressOf(9) });
			const txs = [
				await signed(other, { to: EMITS }),
				failing,
				await signed(other, { to: addressOf(9), nonce: 1 }),
				await signed(one, { to: EMITS, nonce: 1 }),
			];
			const accounts = new Map(txs.map(({ from }) => [from, { nonce: 0n, balance: 10_000n * ETHER }]));
			const request = { ...requestFor(block, 0n, txs), accounts };
			const told = async (mayFail: readonly string[]) =>
				(await simulator().simulate({ ...request, mayFail: new Set(mayFail) })).map(({ ok }) => ok);
			assert.deepEqual(await told([]), [true, false]);
			assert.deepEqual(await told([failing.hash]), [true, false, false]);
			assert.deepEqual(await told([failing.hash, txs[2]?.hash ?? ""]), [true, false, false, true]);
		});

		it("simulates on a state that is no longer the newest", async () => {
			const wallet = await fundedWallet(chain, ETHER);
			const at = await nextBlock(chain);
			// By a mined transaction: what anvil_set… changes, it also changes in the state of the block
			// before.
			const spent = await signed(wallet, { to: SINK, value: (ETHER * 9n) / 10n });
			await chain.rpc("eth_sendRawTransaction", [bytesToHex(spent.raw)]);
			await chain.rpc("evm_mine");
			assert.ok(BigInt(String(await chain.rpc("eth_getBalance", [wallet.address, "latest"]))) < ETHER / 10n);
			const tx = await signed(wallet, { to: SINK, value: ETHER / 2n });
			const [outcome] = await simulator().simulate(requestFor(at, ETHER, [tx]));
			assert.equal(outcome?.ok, true);
		});

		it("runs a chain with a creation in its middle", async () => {
			const wallet = await fundedWallet(chain, ETHER);
			const created = getCreateAddress({ from: wallet.address, nonce: 1 });
			const txs = [
				await signed(wallet, { to: SINK, value: 1n, nonce: 0 }),
				await signed(wallet, { data: contracts.deploying(contracts.EMITS), nonce: 1 }),
				await signed(wallet, { to: created, nonce: 2 }),
			];
			const outcomes = await simulator().simulate(requestFor(await nextBlock(chain), ETHER, txs));
			const told = outcomes.map((outcome) => (outcome.ok ? outcome.emitsEvents : outcome.error.code));
			assert.deepEqual(told, [false, false, true]);
		});

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
			// By halves where the node rejects all at once; two traces a transaction where it is asked
			// one by one.
			assert.ok(calls <= (way === "eth_simulateV1" ? 6 : 26), `${calls} calls`);
		});

		it("carries storage on, and stops at the first that reverts, whatever the node would say of those behind it", async () => {
			const txs = [await count(0, 1), await count(1, 2), await transfer(2, 1n), await count(3, 3)];
			assert.deepEqual(codes(await simulate(txs)), ["ok", "ok", "ok", "ok"]);
			const failing = [
				await count(0, 1),
				await count(1, 3),
				await transfer(2, 2n * ETHER),
				await count(3, 2),
			];
			assert.deepEqual(codes(await simulate(failing)), ["ok", "EXECUTION_REVERTED"]);
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
