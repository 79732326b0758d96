// Users who cancel transactions on a whole running relay: their calls and answers, and what the relay, its builders
// and the chain then say.

import assert from "node:assert/strict";
import type { DevBuilder } from "../devnet/devBuilder.ts";
import { BiddingFixture, type CallOptions } from "./biddingFixture.ts";
import { type Actor, RelayFixture, type Signed } from "./relayFixture.ts";
import { type SystemOptions, startSystem, type TestSystem } from "./startSystem.ts";
import { until } from "./until.ts";

/** What is answered to whoever may not cancel, or cancels what is not pending. */
export const NOT_PENDING = "-32000 transaction not found or no longer pending";
/** A hash that nobody has ever seen. */
export const NEVER_SEEN = `0x${"5e".repeat(32)}`;

/** Cancels by hash; the result, or `code message`. */
export async function cancelBy(
	system: TestSystem,
	tx: Pick<Signed, "hash">,
	who: CallOptions = {},
): Promise<unknown> {
	const { result, error } = await new BiddingFixture(system).ask("eth_cancelTransaction", [tx.hash], who);
	return error === undefined ? result : `${error.code} ${error.message}`;
}

/** A running relay, seen by users who change their minds. */
export class CancelFixture extends RelayFixture {
	cancel(tx: Pick<Signed, "hash">, who: CallOptions = {}): Promise<unknown> {
		return cancelBy(this.system, tx, who);
	}

	/** The answer to a submission: its hash, or `code message`. */
	async tried(tx: Signed, path = "/fast"): Promise<string> {
		const { result, error } = await this.system.client.ask("eth_sendRawTransaction", [tx.raw], path);
		return error === undefined ? String(result) : `${error.code} ${error.message}`;
	}

	/** It is cancelled for everybody who asks. */
	async assertCancelled(tx: Signed): Promise<void> {
		const { status, stage, hash } = await this.status(tx);
		assert.deepEqual([status, stage, hash], ["FAILED", "CANCELLED", tx.hash]);
		assert.equal(await this.byHash(tx), null, "eth_getTransactionByHash");
		assert.equal(await this.system.client.call("eth_getTransactionReceipt", [tx.hash]), null, "receipt");
	}

	/**
	 * Waits until each of `builders` (all unless given) that was sent `tx` has been told to forget it. None of them would
	 * put it into a block then, nor was sent it behind that.
	 */
	async withdrawn(
		tx: Signed,
		builders: readonly string[] = this.system.builders.map(({ name }) => name),
	): Promise<void> {
		for (const builder of builders.map((name) => this.builder(name))) {
			const sent = () => this.deliveries(builder, tx);
			if (sent().length === 0) continue;
			const told = await until(`${tx.hash} cancelled at ${builder.name}`, () => this.cancels(builder, tx)[0]);
			await until(`${builder.name} has forgotten ${tx.hash}`, () => this.live(builder, tx) === 0);
			for (const { seq } of sent()) {
				assert.ok(seq < told.seq, `${builder.name} was sent it behind its cancel`);
			}
		}
	}

	/** No builder has ever read its hash or its bytes, in whatever call. */
	assertUnheard(tx: Signed): void {
		for (const builder of this.system.builders) {
			const text = JSON.stringify(builder.requests());
			assert.ok(!text.includes(tx.raw), `${builder.name} was sent it`);
			assert.ok(!text.includes(tx.hash.slice(2)), `${builder.name} was told its hash`);
		}
	}

	/** How often each builder was sent `tx`. */
	timesSent(tx: Signed): readonly number[] {
		return this.system.builders.map((builder) => this.deliveries(builder, tx).length);
	}

	/** A transaction of somebody else goes all the way to all builders: what was due before is done. */
	async fence(builders: readonly DevBuilder[] = this.system.builders): Promise<void> {
		const tx = (await this.actor()).sign();
		await this.submit("/fast", tx);
		await this.sent(tx, { builders: builders.map(({ name }) => name) });
	}

	/** A new account's transaction on `path`, out to those builders that may have it. */
	async out(
		path = "/fast",
		options: Parameters<Actor["sign"]>[0] = {},
	): Promise<{ readonly actor: Actor; readonly tx: Signed }> {
		const actor = await this.actor();
		const tx = actor.sign(options);
		await this.submit(path, tx);
		await this.reaches(tx, "BROADCAST");
		const builders = path.startsWith("/fullprivacy") ? this.trusted() : this.system.builders;
		await this.sent(tx, { builders: builders.map(({ name }) => name) });
		return { actor, tx };
	}

	/** Builders that get what is on `/fullprivacy`: the first one, in these tests. */
	trusted(): readonly DevBuilder[] {
		return this.system.builders.slice(0, 1);
	}
}

/** Starts a relay with two builders, the first of which alone gets what is fully private. */
export async function startCancels(options: SystemOptions = {}): Promise<CancelFixture> {
	const system = await startSystem({ builders: [{ name: "dev" }, { name: "other" }], ...options });
	return new CancelFixture(system);
}
