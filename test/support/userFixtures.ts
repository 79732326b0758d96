// Fixtures of users on a whole running relay who send chains of nonces, wait for receipts and
// cancel, with the assertions that these tests share.

import assert from "node:assert/strict";
import type { DevBuilder } from "../devnet/devBuilder.ts";
import { BiddingFixture, type CallOptions } from "./biddingFixture.ts";
import type { WireAnswer } from "./relayClient.ts";
import { type Actor, RelayFixture, type Signed } from "./relayFixture.ts";
import { type SystemOptions, startSystem, type TestSystem } from "./systems.ts";
import type { TxOptions } from "./txFactory.ts";
import { until } from "./until.ts";

/** The answer to a cancel by somebody else, or of a transaction that is not pending. */
export const NOT_PENDING =
	"-32000 transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key";
/** The hash of no transaction. */
export const NEVER_SEEN = `0x${"5e".repeat(32)}`;

/** Cancels by hash, and returns the result or `code message`. */
export async function cancelBy(
	system: TestSystem,
	tx: Pick<Signed, "hash">,
	who: CallOptions = {},
): Promise<unknown> {
	const { result, error } = await new BiddingFixture(system).ask("eth_cancelTransaction", [tx.hash], who);
	return error === undefined ? result : `${error.code} ${error.message}`;
}

/** A running relay whose users cancel. */
export class CancelFixture extends RelayFixture {
	cancel(tx: Pick<Signed, "hash">, who: CallOptions = {}): Promise<unknown> {
		return cancelBy(this.system, tx, who);
	}

	/** Submits, and returns the hash or `code message`. */
	async tried(tx: Signed, path = "/fast"): Promise<string> {
		const { result, error } = await this.system.client.ask("eth_sendRawTransaction", [tx.raw], path);
		return error === undefined ? String(result) : `${error.code} ${error.message}`;
	}

	/** Asserts that all reads show `tx` as cancelled. */
	async assertCancelled(tx: Signed): Promise<void> {
		const { status, stage, hash } = await this.status(tx);
		assert.deepEqual([status, stage, hash], ["FAILED", "CANCELLED", tx.hash]);
		assert.equal(await this.byHash(tx), null, "eth_getTransactionByHash");
		assert.equal(await this.system.client.call("eth_getTransactionReceipt", [tx.hash]), null, "receipt");
	}

	/**
	 * Waits until each of `builders` (all by default) that has received `tx` has received a cancel
	 * too. Then asserts that none would put it into a block, and none has received it again after the
	 * cancel.
	 */
	async withdrawn(
		tx: Signed,
		builders: readonly string[] = this.system.builders.map(({ name }) => name),
	): Promise<void> {
		for (const builder of builders.map((name) => this.builder(name))) {
			const sent = () => this.deliveries(builder, tx);
			if (sent().length === 0) continue;
			const told = await until(`${tx.hash} cancelled at ${builder.name}`, () => this.cancels(builder, tx)[0]);
			await until(`${builder.name} has forgotten ${tx.hash}`, () => this.liveOrders(builder, tx) === 0);
			for (const { seq } of sent()) {
				assert.ok(seq < told.seq, `${builder.name} was sent it behind its cancel`);
			}
		}
	}

	/** Asserts that no builder has received hash or bytes of any of them in any call. */
	assertNeverSent(...txs: readonly Signed[]): void {
		for (const builder of this.system.builders) {
			const text = JSON.stringify(builder.requests());
			for (const { raw, hash } of txs) {
				assert.ok(!text.includes(raw), `${builder.name} was sent it`);
				assert.ok(!text.includes(hash.slice(2)), `${builder.name} was sent its hash`);
			}
		}
	}

	/** How often each builder has received `tx`. */
	timesSent(tx: Signed): readonly number[] {
		return this.system.builders.map((builder) => this.deliveries(builder, tx).length);
	}

	/**
	 * Sends another user's transaction to all builders, and waits for it: all that was due before has
	 * then been sent.
	 */
	async fence(builders: readonly DevBuilder[] = this.system.builders): Promise<void> {
		const tx = (await this.actor()).sign();
		await this.submit("/fast", tx);
		await this.waitUntilSent(tx, { builders: builders.map(({ name }) => name) });
	}

	/**
	 * Submits a new account's transaction on `path`, and waits until the builders that may have it
	 * have received it.
	 */
	async out(
		path = "/fast",
		options: Parameters<Actor["sign"]>[0] = {},
	): Promise<{ readonly actor: Actor; readonly tx: Signed }> {
		const actor = await this.actor();
		const tx = actor.sign(options);
		await this.submit(path, tx);
		await this.reaches(tx, "BROADCAST");
		const builders = path.startsWith("/fullprivacy") ? this.trusted() : this.system.builders;
		await this.waitUntilSent(tx, { builders: builders.map(({ name }) => name) });
		return { actor, tx };
	}

	/** The builders that get transactions on `/fullprivacy`: in these tests the first one. */
	trusted(): readonly DevBuilder[] {
		return this.system.builders.slice(0, 1);
	}
}

/** Starts a relay with two builders; only the first one gets transactions on `/fullprivacy`. */
export async function startCancels(options: SystemOptions = {}): Promise<CancelFixture> {
	const system = await startSystem({ builders: [{ name: "dev" }, { name: "other" }], ...options });
	return new CancelFixture(system);
}

/** A transaction in a chain of one sender's nonces, with the path that it is submitted on. */
export type Link = Signed & { readonly path: string };

/** The reason why a transaction waits, as in its events. */
type WaitReason = "nonceGap" | "behindHeld" | "behindUnchecked";

/** A running relay whose users send chains of nonces. */
export class ChainFixture extends CancelFixture {
	/** Signs a transaction for each path, with nonces from `first` on; `options` are by position. */
	chainOf(
		actor: Actor,
		paths: readonly string[],
		first = 0,
		options: Readonly<Record<number, Omit<TxOptions, "by">>> = {},
	): Link[] {
		return paths.map((path, i) => ({ path, ...actor.sign({ ...options[i], nonce: first + i }) }));
	}

	/** Submits them one after another. */
	async submitAll(links: readonly Link[]): Promise<void> {
		for (const link of links) await this.submit(link.path, link);
	}

	/**
	 * Like {@link chainOf}, submits them, and waits until all builders have them for the next block.
	 */
	async chainOut(...args: Parameters<ChainFixture["chainOf"]>): Promise<Link[]> {
		const chain = this.chainOf(...args);
		await this.submitAll(chain);
		for (const link of chain) await this.waitUntilSent(link);
		return chain;
	}

	/** Waits until they are QUEUED for `reason`; those that searchers know show no reason. */
	async assertWaiting(links: readonly Link[], reason: WaitReason): Promise<void> {
		for (const link of links) {
			const { status, shared } = await this.reaches(link, "QUEUED");
			assert.equal(status, "UNKNOWN");
			// It may have waited for the same reason before, so only the last event counts.
			await until(`${link.path} waits: ${reason}`, async () => {
				const last = (await this.events(link)).findLast(({ type }) => type === "queued");
				return last !== undefined && last.reason === (shared ? undefined : reason);
			});
		}
	}

	/** Lets `blocks` blocks pass, and asserts that they still wait and none was sent meanwhile. */
	async assertStayBack(links: readonly Link[], reason: WaitReason, blocks: number): Promise<void> {
		await this.assertWaiting(links, reason);
		// By then all that was sent before they had to wait has arrived.
		await this.fence();
		const before = links.map((link) => this.timesSent(link));
		for (let i = 0; i < blocks; i += 1) await this.passBlock();
		await this.fence();
		await this.assertWaiting(links, reason);
		assert.deepEqual(
			links.map((link) => this.timesSent(link)),
			before,
			"they were sent while they waited",
		);
	}

	/**
	 * Asserts that `builders` (default all) have them for the next block, and that it holds all of
	 * them in order.
	 */
	async assertGoOn(links: readonly Signed[], builders?: readonly string[]): Promise<void> {
		for (const link of links) await this.waitUntilSent(link, builders === undefined ? {} : { builders });
		const block = await this.system.nextBlock();
		const places: number[] = [];
		for (const link of links) {
			await this.reaches(link, "INCLUDED");
			const receipt = await this.receipt(link);
			assert.deepEqual([receipt?.block, receipt?.ok], [block, true]);
			places.push(receipt?.index ?? -1);
		}
		assert.deepEqual(
			places,
			[...places].sort((a, b) => a - b),
		);
	}

	/** Waits until their lifetimes have started, or started again, at the next block. */
	async assertYoung(links: readonly Signed[]): Promise<void> {
		const next = (await this.head()) + 1;
		for (const link of links) await this.event(link, "ready", ({ block }) => block === next);
	}
}

export const SYNC = "eth_sendRawTransactionSync";
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** A call in flight; `ended` is true once it was answered. */
interface Sending {
	readonly answer: Promise<WireAnswer>;
	readonly ended: boolean;
}

/** A running relay whose users wait for receipts. */
export class SyncFixture extends CancelFixture {
	sync(tx: Pick<Signed, "raw">, path = "/fast", ...timeout: unknown[]): Sending {
		const sending = { answer: this.system.client.ask(SYNC, [tx.raw, ...timeout], path), ended: false };
		const end = () => {
			sending.ended = true;
		};
		sending.answer.then(end, end);
		return sending;
	}

	/** Calls eth_sendRawTransactionSync, and waits until the builder has the transaction. */
	async waiting(tx: Signed, path = "/fast", ...timeout: unknown[]): Promise<Sending> {
		const sending = this.sync(tx, path, ...timeout);
		await this.reaches(tx, "BROADCAST");
		await this.waitUntilSent(tx);
		assert.equal(sending.ended, false, "it was answered before it was mined");
		return sending;
	}

	async nodeReceipt(tx: Pick<Signed, "hash">): Promise<Record<string, unknown>> {
		const receipt = await this.system.chain.rpc("eth_getTransactionReceipt", [tx.hash]);
		assert.ok(typeof receipt === "object" && receipt !== null, "the node has its receipt");
		return { ...receipt };
	}

	/** Asserts that the answer is the node's own receipt. */
	async assertMined({ answer }: Sending, tx: Signed, status = "0x1"): Promise<void> {
		const { result, error } = await answer;
		assert.equal(error, undefined, error?.message);
		assert.deepEqual(result, await this.nodeReceipt(tx));
		assert.equal((result as { status: string }).status, status);
	}

	/**
	 * Asserts that the answer is an error with `code`, the text of EIP-7966 followed by `why`, and
	 * the hash.
	 */
	async assertFails({ answer }: Sending, tx: Signed, code: 4 | 5, why: string): Promise<void> {
		const { result, error } = await answer;
		assert.equal(result, undefined);
		assert.deepEqual(error, { code, message: `${NOT_PROCESSED} ${why}`, data: tx.hash });
	}
}

/** Starts a relay with one builder. */
export async function startSync(): Promise<SyncFixture> {
	return new SyncFixture(await startSystem());
}
