// A head tracker that follows a node, and a mirror that rebuilds the chain from the tracker's
// updates and checks that each follows from the one before. Collects the tracker's log.

import assert from "node:assert/strict";
import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import { NodeReader } from "../../relay/chain/nodeReader.ts";
import type { Block, ChainUpdate } from "../../relay/domain/chain.ts";
import { Recoveries } from "../../relay/domain/recoveries.ts";
import { HeadTracker, type HeadTrackerOptions } from "../../relay/inclusion/heads.ts";
import { systemClock } from "../../shared/clock.ts";
import { Slots } from "../../shared/ethereum/slots.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { always, PRAGUE } from "./forks.ts";
import { until } from "./until.ts";

/** How long the tracker waits for the node, in ms: longer than any node takes on a busy machine. */
export const NODE_TIMEOUT_MS = 60_000;

/** The chain rebuilt from the tracker's updates. */
class ChainMirror {
	/** Oldest first, starting at the first head or the last gap. */
	blocks: Block[] = [];
	readonly updates: ChainUpdate[] = [];
	/** The first error found, or null. */
	fault: unknown = null;

	/** Applies an update, and notes in `fault` if it does not follow from the ones before. */
	apply(update: ChainUpdate): void {
		try {
			this.#check(update);
		} catch (thrown) {
			this.fault ??= thrown;
		}
		this.updates.push(update);
	}

	get head(): Block | undefined {
		return this.blocks.at(-1);
	}

	#check(update: ChainUpdate): void {
		const { head, reverted, applied, gap } = update;
		if (gap) {
			assert.deepEqual([reverted, applied], [[], [head]]);
			this.blocks = [head];
			return;
		}
		assert.ok(reverted.length + applied.length > 0, "an update must revert or apply a block");
		for (const block of reverted) {
			assert.equal(this.blocks.pop()?.hash, block.hash, "reverted blocks must be newest first");
		}
		for (const block of applied) {
			assert.equal(block.parentHash, this.head?.hash, "each applied block must extend the head");
			assert.equal(block.number, (this.head?.number ?? 0) + 1);
			this.blocks.push(block);
		}
		assert.equal(this.head?.hash, head.hash);
	}
}

/** The tracker must know which blocks it follows, and say so of those alone; null: it does. */
function faultOfHas(tracker: HeadTracker, blocks: readonly Block[]): Error | null {
	for (const { number, hash, parentHash } of blocks) {
		if (tracker.has(number, hash) !== true) return new Error(`has() must know block ${number}`);
		if (tracker.has(number, parentHash) !== false) return new Error(`has() must know no other ${number}`);
		if (tracker.has(number + 1, hash) === true) return new Error("has() must compare the number");
	}
	if (tracker.has(-1, "") !== null) return new Error("has() can't know what is before the first block");
	return null;
}

export type HeadFixture = Awaited<ReturnType<typeof startHeadFixture>>;

/** Calls a method of the node itself, not through the tracker. */
type AskNode = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Starts a tracker of the node at `url`, which is compared with what `askNode` answers. */
export async function startHeadFixture(
	url: string,
	askNode: AskNode,
	options: Partial<HeadTrackerOptions>,
	slots = new Slots({ setMs: 12_000 }, { clock: systemClock }),
) {
	const logged: string[] = [];
	const note = (level: string) => (message: string) => logged.push(`${level} ${message}`);
	const log: Logger = { ...silentLogger, info: note("info"), warn: note("warn"), error: note("error") };
	const client = new JsonRpcClient({ url, timeoutMs: NODE_TIMEOUT_MS }, { clock: systemClock });
	const node = new NodeReader(
		{ timeoutMs: NODE_TIMEOUT_MS },
		{ client, clock: systemClock, log: silentLogger },
	);
	const mirror = new ChainMirror();
	const { kept } = options.limits ?? { kept: 128 };
	const tracker = new HeadTracker(
		{ pollMs: 25, ...options },
		{
			slots,
			node,
			nextBlock: nextBlockReader({ slots }, { node, forks: always(PRAGUE) }),
			recoveries: new Recoveries(),
			chainId: 31_337n,
			clock: systemClock,
			log,
		},
	);
	let gate: Promise<void> = Promise.resolve();
	let open = (): void => {};
	let runningListeners = 0;
	tracker.subscribe(async (update) => {
		runningListeners += 1;
		if (runningListeners > 1)
			mirror.fault ??= new Error("an update came before the one before it was handled");
		if (tracker.current()?.hash !== update.head.hash)
			mirror.fault ??= new Error("current() must be the head of the update");
		if (tracker.next()?.number !== update.head.number + 1)
			mirror.fault ??= new Error("next() must be the block after that head");
		mirror.apply(update);
		mirror.fault ??= faultOfHas(tracker, mirror.blocks.slice(-kept));
		await gate;
		runningListeners -= 1;
	});
	await tracker.start();
	return {
		tracker,
		mirror,
		/** Messages of level info and above, each after its level. */
		logged,
		/** Makes the listener wait until the returned function is called. */
		hold(): () => void {
			gate = new Promise((resolve) => {
				open = resolve;
			});
			return open;
		},
		/**
		 * Waits until the mirror has the node's head, then checks that no update was wrong and that
		 * each block of the mirror is the node's.
		 */
		async waitUntilInSync(what: string): Promise<void> {
			await until(what, async () => {
				const latest = (await askNode("eth_getBlockByNumber", ["latest", false])) as { hash: string };
				return mirror.fault !== null || mirror.head?.hash === latest.hash;
			});
			assert.ifError(mirror.fault);
			for (const { number, hash } of mirror.blocks) {
				const own = await askNode("eth_getBlockByNumber", [`0x${number.toString(16)}`, false]);
				assert.equal((own as { hash: string }).hash, hash, `block ${number}`);
			}
		},
		/** Stops the tracker and its client of the node. */
		async stop(): Promise<void> {
			open();
			await tracker.stop();
			await client.close();
		},
	};
}
