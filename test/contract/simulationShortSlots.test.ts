// Simulations of blocks that have their parent's timestamp, or follow one another faster than
// seconds: on anvil, which has such blocks, and on go-ethereum, which refuses them. Without GETH on
// recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Wallet } from "ethers";
import { timestampBehind } from "../../relay/domain/chain.ts";
import { type BlockContext, blockContext } from "../../relay/domain/simulation.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { BEACON_ROOTS_ADDRESS } from "../../relay/simulation/engines/nodeObjects.ts";
import { systemClock } from "../../shared/clock.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../shared/log.ts";
import { startDevChain } from "../devnet/devChain.ts";
import { OSAKA } from "../support/forks.ts";
import { startRecordedGeth } from "../support/recordedGeth.ts";
import {
	abilitiesOf,
	addressOf,
	codes,
	ETHER,
	GWEI,
	requestFor,
	signed,
	simulatorOn,
} from "../support/simulationFixture.ts";

/** Reverts with the block's timestamp: TIMESTAMP PUSH0 MSTORE PUSH1 32 PUSH0 REVERT. */
const SHOWS_TIME = addressOf(1);
const CODE = "0x425f5260205ffd";
const COINBASE = "0x00000000000000000000000000000000facade02";
const SLOT = { ms: 450 };

interface Node {
	readonly node: SimulationNode;
	readonly rpc: (method: string, params: readonly unknown[]) => Promise<unknown>;
	readonly wallet: (index: number) => Wallet;
	readonly stop: () => Promise<void>;
}

async function onAnvil(): Promise<Node> {
	const chain = await startDevChain();
	await chain.rpc("anvil_setCode", [SHOWS_TIME, CODE]);
	await chain.rpc("evm_mine");
	const node = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
	const stop = async () => {
		await node.close();
		await chain.stop();
	};
	return { node, stop, rpc: chain.rpc, wallet: chain.wallet };
}

async function onGeth(): Promise<Node> {
	const alloc = { [SHOWS_TIME.slice(2)]: { code: CODE, balance: "0x0" } };
	const geth = await startRecordedGeth("simulationShortSlots", { alloc }, [
		...["prevRandao", "beaconRoot", BEACON_ROOTS_ADDRESS],
	]);
	await geth.mine({ txs: [] });
	const wallet = (index: number) => new Wallet(geth.accounts[index]?.privateKey ?? "");
	return { node: geth.node, rpc: geth.rpc, wallet, stop: () => geth.stop() };
}

for (const [name, start, isExact] of [
	["anvil", onAnvil, true],
	["go-ethereum", onGeth, false],
] as const) {
	describe(`slots of 450 ms on ${name}`, () => {
		let chain: Node;
		let parent: number;
		before(async () => {
			chain = await start();
		});
		after(() => chain?.stop());

		/** The next block, so many seconds behind its parent. */
		async function next(seconds: number): Promise<BlockContext> {
			const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
			parent = Number(head.timestamp);
			const stateBlock = Number(head.number);
			return {
				...{ stateBlock, number: stateBlock + 1, timestamp: parent + seconds, stepMs: SLOT.ms },
				...{ parentTimestamp: parent, parentHash: String(head.hash), feeRecipient: COINBASE },
				...{ baseFee: 3n * GWEI, blobBaseFee: 1n, gasLimit: 60_000_000n, fork: OSAKA },
			};
		}

		/**
		 * The time, behind the parent's, that a transaction sees in `block`, behind `count` others of
		 * its sender.
		 */
		async function seen(block: BlockContext, count = 0, gasLimit = 200_000n): Promise<number | string> {
			const targets = await Promise.all(
				Array.from({ length: count }, (_, nonce) =>
					signed(chain.wallet(0), { to: addressOf(9), nonce, gasLimit }),
				),
			);
			const own = await signed(chain.wallet(0), { to: SHOWS_TIME, nonce: count, gasLimit });
			const request = requestFor(block, ETHER, [...targets, own]);
			const abilities = await abilitiesOf(chain.node, systemClock, silentLogger, SLOT);
			const outcomes = await simulatorOn(chain.node, abilities).simulate({ ...request, mayWait: true });
			const last = outcomes.at(-1);
			return last?.ok === false && last.error.data !== undefined
				? Number(last.error.data) - parent
				: codes(outcomes).join();
		}

		it("a block of its parent's second is simulated in that second, or in the next where the node has no such", async () => {
			assert.equal(await seen(await next(0)), isExact ? 0 : 1);
			assert.equal(await seen(await next(1)), 1);
		});

		it("so are blocks of the next seconds, up to thirty ahead", async () => {
			for (const ahead of [2, 3, 30]) {
				const block = await next(0);
				const later = blockContext(block, COINBASE, block.number + ahead - 1);
				const seconds = timestampBehind(block, ahead - 1) - parent;
				assert.ok(seconds < ahead, "faster than seconds");
				assert.equal(await seen(later), isExact ? seconds : ahead);
			}
		});

		// anvil has room for all.
		it("and blocks behind it, for what has no room in it", async () => {
			const small = { ...(await next(0)), gasLimit: 410_000n };
			assert.equal(await seen(small, 4, 400_000n), isExact ? 0 : 5);
		});
	});
}
