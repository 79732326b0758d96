// Contract of the simulation engines, each alone and all together, on a real node: the same transactions come in, the
// same outcomes must go out, as exact code and message. Where anvil tells one engine less, the row says so.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { getCreateAddress, type TransactionLike } from "ethers";
import type { BlockContext, SimulationOutcome } from "../../relay/domain/simulation.ts";
import { ENGINES } from "../../relay/simulation/engines/index.ts";
import { createSimulator } from "../../relay/simulation/simulator.ts";
import { systemClock } from "../../shared/clock.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../shared/log.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import * as contracts from "../support/simulationContracts.ts";
import {
	addressOf,
	ETHER,
	fundedWallet,
	GWEI,
	nextBlock,
	placeContracts,
	requestFor,
	signed,
} from "../support/simulationScene.ts";

const CUSTOM = "0xdeadbeef0000000000000000000000000000000000000000000000000000000000000007";
const LONG = `0xdeadbeef${"ab".repeat(10_000)}`;

const EMITS = addressOf(1);
const EMITS_AND_REVERTS = addressOf(2);
const SHOWS = addressOf(3);
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
};

/** Expected for everybody; `vague`: what eth_simulateV1 alone says on anvil, which tells it no reason. */
interface Row {
	readonly fields: TransactionLike;
	readonly emits?: boolean;
	readonly gasUsed?: bigint;
	readonly fails?: readonly [code: string, message: string, data?: string];
	readonly vague?: true;
	/** anvil's eth_simulateV1 takes no creations. */
	readonly creation?: true;
}

const ROWS: Readonly<Record<string, Row>> = {
	"plain transfer": { fields: { to: addressOf(99), value: 5n }, emits: false, gasUsed: 21_000n },
	"legacy transfer": {
		fields: { to: addressOf(99), gasPrice: 5n * GWEI, type: 0 },
		emits: false,
		gasUsed: 21_000n,
	},
	"transfer with an access list": {
		fields: {
			type: 1,
			to: addressOf(99),
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
	"out of gas": { fields: { to: addressOf(10) }, fails: ["OUT_OF_GAS", "out of gas"], vague: true },
	"invalid opcode": {
		fields: { to: addressOf(11) },
		fails: ["INVALID_OPCODE", "invalid opcode"],
		vague: true,
	},
	"stack underflow": {
		fields: { to: addressOf(12) },
		fails: ["EXECUTION_FAILED", "execution failed: stack underflow"],
		vague: true,
	},
	"jump to nowhere": {
		fields: { to: addressOf(13) },
		fails: ["EXECUTION_FAILED", "execution failed: invalid jump destination"],
		vague: true,
	},
	"gas below the intrinsic gas": {
		fields: { to: addressOf(99), gasLimit: 20_999n },
		fails: ["OUT_OF_GAS", "out of gas: intrinsic gas too low"],
	},
	creation: { fields: { data: contracts.deploying(contracts.EMITS) }, emits: false, creation: true },
	"creation that reverts": {
		fields: { data: contracts.revertingWith(contracts.errorString("no")) },
		fails: ["EXECUTION_REVERTED", "execution reverted: no", contracts.errorString("no")],
		creation: true,
	},
	"creation that is too dear": {
		fields: { data: contracts.deploying(`0x${"00".repeat(2_000)}`) },
		fails: ["OUT_OF_GAS", "out of gas"],
		creation: true,
	},
	"creation of code that starts with 0xEF": {
		fields: { data: contracts.deploying("0xef") },
		fails: ["EXECUTION_FAILED", "execution failed: contract code starts with 0xEF"],
		creation: true,
	},
};

const SETS = [...ENGINES.map((engine) => [engine]), ENGINES];

for (const engines of SETS) {
	const name = engines.map((engine) => engine.name).join(", ");
	const single = engines.length === 1 ? engines[0] : undefined;
	const sequences = engines.some((engine) => engine.sequences);
	const isSimulateV1 = single?.name === "eth_simulateV1";

	describe(`simulation by ${name}`, () => {
		let chain: DevChain;
		let node: JsonRpcClient;
		let block: BlockContext;
		before(async () => {
			chain = await startDevChain();
			node = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
			await placeContracts(chain, PLACED);
			block = await nextBlock(chain);
		});
		after(async () => {
			await node.close();
			await chain.stop();
		});

		const simulator = (fixedFeeRecipient = false) =>
			createSimulator(
				{ fixedFeeRecipient, timeoutMs: 10_000 },
				{ node, engines, clock: systemClock, log: silentLogger, onRun() {} },
			);

		for (const [title, row] of Object.entries(ROWS)) {
			it(title, async () => {
				const tx = await signed(chain.wallet(0), row.fields);
				const outcomes = await simulator().simulate(requestFor(block, 10_000n * ETHER, [tx]));
				assert.equal(outcomes.length, 1);
				checkRow(row, outcomes[0]);
			});
		}

		function checkRow(row: Row, outcome: SimulationOutcome | undefined): void {
			if (row.creation && isSimulateV1) {
				const error = { code: "NODE_UNAVAILABLE", message: "the node gave no verdict" };
				assert.deepEqual(outcome, { ok: false, error });
				return;
			}
			if (row.fails !== undefined) {
				const vague = row.vague === true && isSimulateV1;
				const [code, message, data] = vague ? ["EXECUTION_FAILED", "execution failed"] : row.fails;
				assert.deepEqual(outcome, {
					ok: false,
					error: data === undefined ? { code, message } : { code, message, data },
				});
				return;
			}
			assert.ok(outcome?.ok);
			const tellsEvents = engines.some((engine) => engine.events);
			assert.equal(outcome.emitsEvents, tellsEvents ? row.emits : null);
			assert.equal(outcome.paid, tellsEvents ? 0n : null);
			// An engine without events can't tell the gas either: it answers the most that it can be.
			if (row.gasUsed !== undefined) assert.equal(outcome.gasUsed, tellsEvents ? row.gasUsed : 200_000n);
		}

		it("shows the transaction the next block, and the price that it pays", async () => {
			const tx = await signed(chain.wallet(0), { to: SHOWS });
			for (const fixedFeeRecipient of [false, true]) {
				const [outcome] = await simulator(fixedFeeRecipient).simulate(
					requestFor(block, 10_000n * ETHER, [tx]),
				);
				assert.ok(outcome !== undefined && !outcome.ok);
				const seen = contracts.readSurroundings(outcome.error.data ?? "");
				const { coinbaseBalance, ...rest } = seen;
				// Drawn, where the coinbase is: it must not show that this is a simulation.
				const drawn = (coinbaseBalance ?? 0n) >= 10n ** 16n;
				assert.equal(fixedFeeRecipient ? coinbaseBalance === 0n : drawn, true, `${coinbaseBalance} wei`);
				assert.deepEqual(rest, {
					coinbase: BigInt(block.feeRecipient),
					timestamp: BigInt(block.timestamp),
					number: BigInt(block.number),
					// anvil 1.7.1 takes the base fee for 0 in eth_simulateV1 without validation, whatever it is told.
					baseFee: engines[0]?.name === "eth_simulateV1" ? 0n : block.baseFee,
					gasLimit: block.gasLimit,
					gasPrice: block.baseFee + GWEI,
					senderBalance: 10_000n * ETHER - 200_000n * (block.baseFee + GWEI),
				});
			}
		});

		it("answers for a chain up to the first failure, or for what it can run", async () => {
			const wallet = chain.wallet(0);
			const txs = [
				await signed(wallet, { to: EMITS, nonce: 0 }),
				await signed(wallet, { to: addressOf(10), nonce: 1 }),
				await signed(wallet, { to: EMITS, nonce: 2 }),
			];
			const outcomes = await simulator().simulate(requestFor(block, 10_000n * ETHER, txs));
			assert.equal(outcomes.length, sequences ? 2 : 1);
			assert.equal(outcomes[0]?.ok, true);
			if (!sequences) return;
			const [code, message] = isSimulateV1
				? ["EXECUTION_FAILED", "execution failed"]
				: ["OUT_OF_GAS", "out of gas"];
			assert.deepEqual(outcomes[1], { ok: false, error: { code, message } });
		});

		it("simulates on a state that is no longer the newest", async () => {
			const wallet = await fundedWallet(chain, ETHER);
			const at = await nextBlock(chain);
			// By a mined transaction: what anvil_set… changes, it also changes in the state of the block before.
			const spent = await signed(wallet, { to: addressOf(99), value: (ETHER * 9n) / 10n });
			await chain.rpc("eth_sendRawTransaction", [bytesToHex(spent.raw)]);
			await chain.rpc("evm_mine");
			assert.ok(BigInt(String(await chain.rpc("eth_getBalance", [wallet.address, "latest"]))) < ETHER / 10n);
			const tx = await signed(wallet, { to: addressOf(99), value: ETHER / 2n });
			const [outcome] = await simulator().simulate(requestFor(at, ETHER, [tx]));
			assert.equal(outcome?.ok, true);
		});

		it("runs a chain with a creation in its middle", async () => {
			const wallet = await fundedWallet(chain, ETHER);
			const created = getCreateAddress({ from: wallet.address, nonce: 1 });
			const txs = [
				await signed(wallet, { to: addressOf(99), value: 1n, nonce: 0 }),
				await signed(wallet, { data: contracts.deploying(contracts.EMITS), nonce: 1 }),
				await signed(wallet, { to: created, nonce: 2 }),
			];
			const outcomes = await simulator().simulate(requestFor(await nextBlock(chain), ETHER, txs));
			const told = outcomes.map((outcome) => (outcome.ok ? outcome.emitsEvents : outcome.error.code));
			const alone = isSimulateV1 ? ["NODE_UNAVAILABLE"] : [null];
			assert.deepEqual(told, sequences && !isSimulateV1 ? [false, false, true] : alone);
		});
	});
}
