// A chain, a tracker that follows it, and a mirror that checks each change that the tracker reports against what it
// knows already. Keeps what was logged.

import assert from "node:assert/strict";
import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import { NodeReader } from "../../relay/chain/nodeReader.ts";
import type { Block, ChainUpdate } from "../../relay/domain/chain.ts";
import { HeadTracker, type HeadTrackerOptions } from "../../relay/inclusion/heads.ts";
import { systemClock } from "../../shared/clock.ts";
import { senderOfAuthorization } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { until } from "./until.ts";

/** The chain as the changes told it. */
class ChainMirror {
	/** Oldest first, from the first head or the last gap on. */
	blocks: Block[] = [];
	readonly updates: ChainUpdate[] = [];
	/** The first thing that did not fit. */
	fault: unknown = null;

	/** Folds a change; notes where it does not follow from what was told before. */
	fold(update: ChainUpdate): void {
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
		assert.ok(reverted.length + applied.length > 0, "a change changes something");
		for (const block of reverted) assert.equal(this.blocks.pop()?.hash, block.hash, "newest first");
		for (const block of applied) {
			assert.equal(block.parentHash, this.head?.hash, "oldest first, linked");
			assert.equal(block.number, (this.head?.number ?? 0) + 1);
			this.blocks.push(block);
		}
		assert.equal(this.head?.hash, head.hash);
	}
}

export type HeadFixture = Awaited<ReturnType<typeof startHeadFixture>>;

/** What the node says of itself, asked beside the tracker. */
type Ask = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Starts to follow the node at `url`; `ask` is used to compare with. */
export async function startHeadFixture(url: string, ask: Ask, options: Partial<HeadTrackerOptions>) {
	const logged: string[] = [];
	const note = (level: string) => (message: string) => logged.push(`${level} ${message}`);
	const log: Logger = { ...silentLogger, info: note("info"), warn: note("warn"), error: note("error") };
	const client = new JsonRpcClient({ url, timeoutMs: 5_000 }, { clock: systemClock });
	const node = new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger });
	const mirror = new ChainMirror();
	const tracker = new HeadTracker(
		{ pollMs: 25, slotSeconds: 12, ...options },
		{
			node,
			nextBlock: nextBlockReader({ slotSeconds: 12 }, { node }),
			authorityOf: senderOfAuthorization,
			clock: systemClock,
			log,
		},
	);
	let gate: Promise<void> = Promise.resolve();
	let open = (): void => {};
	let inside = 0;
	tracker.subscribe(async (update) => {
		inside += 1;
		if (inside > 1) mirror.fault ??= new Error("two changes at a time");
		if (tracker.current()?.hash !== update.head.hash) mirror.fault ??= new Error("current() is another head");
		if (tracker.next()?.number !== update.head.number + 1) mirror.fault ??= new Error("next() is of another");
		mirror.fold(update);
		await gate;
		inside -= 1;
	});
	await tracker.start();
	return {
		tracker,
		mirror,
		/** Messages of info and above, with their level. */
		logged,
		/** Listeners wait from now on, until the function that is answered is called. */
		hold(): () => void {
			gate = new Promise((resolve) => {
				open = resolve;
			});
			return open;
		},
		/** Waits until the mirror is what the node says, block by block, and each change followed from the one before. */
		async inStep(what: string): Promise<void> {
			await until(what, async () => {
				const latest = (await ask("eth_getBlockByNumber", ["latest", false])) as { hash: string };
				return mirror.fault !== null || mirror.head?.hash === latest.hash;
			});
			assert.ifError(mirror.fault);
			for (const { number, hash } of mirror.blocks) {
				const own = await ask("eth_getBlockByNumber", [`0x${number.toString(16)}`, false]);
				assert.equal((own as { hash: string }).hash, hash, `block ${number}`);
			}
		},
		/** Ends tracker and client. */
		async stop(): Promise<void> {
			open();
			await tracker.stop();
			await client.close();
		},
	};
}
