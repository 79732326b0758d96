// A backrun's view and payment in a simulation with what the consensus layer has published of the
// next block, on go-ethereum (see test/support/recordedGeth.ts). They are just those in that block,
// for each way to simulate. Without the published values, a contract that pays if PREVRANDAO or the
// beacon root differs from them wins its bid for a wei.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type PayloadAttributes, withPublished } from "../../relay/domain/chain.ts";
import { type BlockContext, blockContext, type SimulationOutcome } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import type { NodeAbilities } from "../../relay/simulation/nodeAbilities.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { OSAKA } from "../support/forks.ts";
import { COINBASE, GethSimulation } from "../support/gethSimulation.ts";
import { startRecordedGeth } from "../support/recordedGeth.ts";
import { ASKS_BEACON_ROOT, payingWhere, readSights, SHOWS_ALL } from "../support/simulationCheats.ts";
import {
	addressOf,
	backrunRequest,
	ETHER,
	GWEI,
	requestFor,
	signed,
	simulatorOn,
} from "../support/simulationFixture.ts";

const SINK = addressOf(99);
const SHOWS = addressOf(1);
const MUCH = 5n * ETHER;
const PREV_RANDAO = `0x${"7e".repeat(32)}`;
const BEACON_ROOT = `0x${"be".repeat(32)}`;
/** A slot has passed without a block. */
const SECONDS = 24;

/** Pay much where that is another than the published one, which is the calldata's word. */
const CHEATS: Readonly<Record<string, readonly [code: string, told: (timestamp: number) => string]>> = {
	PREVRANDAO: [payingWhere("44 5f 35 14 15"), () => PREV_RANDAO],
	"the parent beacon root": [payingWhere(`${ASKS_BEACON_ROOT} 5f 35 14 15`), () => BEACON_ROOT],
	"the time": [payingWhere("42 5f 35 14 15"), (timestamp) => `0x${timestamp.toString(16).padStart(64, "0")}`],
};
const cheatAt = (title: string) => addressOf(100 + Object.keys(CHEATS).indexOf(title));

const ALLOC = Object.fromEntries(
	[[SHOWS, SHOWS_ALL], ...Object.entries(CHEATS).map(([title, [code]]) => [cheatAt(title), code])].map(
		([address, code]) => [String(address).slice(2), { code: String(code), balance: "0x0" }],
	),
);

const ALL_GAS = 1n << 49n;
const WAYS: Readonly<Record<string, NodeAbilities>> = {
	eth_simulateV1: { simulates: true, gasCap: ALL_GAS },
	"eth_simulateV1 in parts": { simulates: true, gasCap: 250_000n },
	debug_traceCall: { simulates: false, gasCap: ALL_GAS },
};

for (const [way, abilities] of Object.entries(WAYS)) {
	describe(`a backrun by ${way} in the published block`, () => {
		let fixture: GethSimulation;
		before(async () => {
			const name = `simulationPublishedBy${way.replace(/\W/g, "")}`;
			fixture = new GethSimulation(await startRecordedGeth(name, { alloc: ALLOC }));
			// Real coinbases hold something, and the history has the head behind a first block.
			const gift = await signed(fixture.wallet(2), { to: COINBASE, value: ETHER });
			await fixture.geth.mine({ txs: [bytesToHex(gift.raw)], coinbase: COINBASE });
			await fixture.geth.mine({ coinbase: COINBASE });
		});
		after(() => fixture?.geth.stop());

		/** The next block, with what is published of it. */
		async function published(): Promise<BlockContext & { readonly published: PayloadAttributes }> {
			const head = (await fixture.geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<
				string,
				string
			>;
			const { baseFeePerGas, baseFeePerBlobGas } = (await fixture.geth.rpc("eth_feeHistory", [
				"0x1",
				"latest",
				[],
			])) as Record<string, string[]>;
			const [hash, timestamp] = [String(head.hash), Number(head.timestamp)];
			const next = {
				...{ number: Number(head.number) + 1, timestamp: timestamp + 12, parentHash: hash },
				baseFee: BigInt(baseFeePerGas?.[1] ?? 0),
				blobBaseFee: BigInt(baseFeePerBlobGas?.[1] ?? 0),
				gasLimit: BigInt(head.gasLimit ?? 0),
				fork: OSAKA,
			};
			const attributes = {
				...{ parentHash: hash, timestamp: timestamp + SECONDS },
				...{ prevRandao: PREV_RANDAO, beaconRoot: BEACON_ROOT },
			};
			const block = withPublished(next, { hash, timestamp }, () => attributes);
			return { ...blockContext(block, COINBASE), published: attributes };
		}

		/** A target and a backrun behind it, of senders that have sent nothing. */
		async function pair(to: string, data: string) {
			return [
				await signed(fixture.wallet(0), { to: SINK, value: 5n }),
				await signed(fixture.wallet(1), { to, value: to === SHOWS ? 0n : MUCH, data }),
			] as const;
		}

		async function simulated(
			node: SimulationNode,
			block: BlockContext,
			[target, backrun]: readonly [DecodedTransaction, DecodedTransaction],
		): Promise<SimulationOutcome | undefined> {
			const request = backrunRequest(requestFor(block, 10_000n * ETHER, [target]), backrun, 10_000n * ETHER);
			const outcomes = await simulatorOn(node, abilities).simulate(request);
			assert.equal(outcomes.length, 2);
			return outcomes[1];
		}

		/** Mines both in the published block, does `look`, and goes back. */
		async function mined<T>(
			{ published: { timestamp, prevRandao, beaconRoot } }: Awaited<ReturnType<typeof published>>,
			txs: readonly DecodedTransaction[],
			look: () => Promise<T>,
		): Promise<T> {
			const head = Number(await fixture.geth.rpc("eth_blockNumber"));
			await fixture.geth.mine({
				...{ txs: txs.map(({ raw }) => bytesToHex(raw)), coinbase: COINBASE },
				...{ timestamp, prevRandao, beaconRoot },
			});
			const seen = await look();
			await fixture.geth.revert(head);
			return seen;
		}

		it("sees what it sees in the block", async () => {
			const block = await published();
			const both = await pair(SHOWS, `0x${"11".repeat(32)}`);
			const outcome = await simulated(fixture.geth.node, block, both);
			assert.ok(outcome?.ok === false, "it reverts with what it sees");
			const real = await mined(block, both, async () => {
				const trace = await fixture.geth.rpc("debug_traceTransaction", [
					both[1].hash,
					{ tracer: "callTracer" },
				]);
				return readSights((trace as { output: string }).output);
			});
			assert.deepEqual(readSights(outcome.error.data ?? ""), real);
			assert.deepEqual([real.prevRandao, real.beaconRoot], [BigInt(PREV_RANDAO), BigInt(BEACON_ROOT)]);
		});

		for (const [title, [, told]] of Object.entries(CHEATS)) {
			it(`that pays where ${title} is another is worth what it pays in the block`, async () => {
				const block = await published();
				const both = await pair(cheatAt(title), told(block.timestamp));
				const outcome = await simulated(fixture.geth.node, block, both);
				const held = await fixture.balance();
				const paid = await mined(block, both, async () => {
					let tips = 0n;
					for (const { hash } of both) {
						const receipt = (await fixture.geth.rpc("eth_getTransactionReceipt", [hash])) as Record<
							string,
							string
						>;
						assert.equal(receipt.status, "0x1");
						tips += BigInt(receipt.gasUsed ?? 0) * GWEI;
					}
					return (await fixture.balance()) - held - tips;
				});
				assert.deepEqual([outcome?.ok === true && outcome.paid, paid], [1n, 1n]);
			});

			it(`that pays where ${title} is another deceives a relay to which nothing is published`, async () => {
				const { published: _, ...block } = await published();
				const both = await pair(cheatAt(title), told(block.timestamp));
				const unpublished = { ...block, timestamp: block.timestamp - SECONDS + 12 };
				const outcome = await simulated(fixture.node, unpublished, both);
				assert.equal(outcome?.ok === true && outcome.paid, MUCH);
			});
		}
	});
}
