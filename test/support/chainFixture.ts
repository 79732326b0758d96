// Sends chains of one account's nonces through a whole relay, and asserts what must hold of the links that wait and
// of those that are sent.

import assert from "node:assert/strict";
import { type Actor, RelayFixture, type Signed } from "./relayFixture.ts";
import type { TxOptions } from "./txFactory.ts";
import { until } from "./until.ts";

/** A transaction of a chain, with the path that it was submitted on. */
export type Link = Signed & { readonly path: string };

/** Why it waits, as its events tell. */
export type WaitReason = "nonceGap" | "behindHeld" | "behindUnchecked";

/** A system, seen by the senders of chains. */
export class ChainFixture extends RelayFixture {
	/** Signs a link for each path, in the order of their nonces from `first` on; `options` by their place. */
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

	/** As {@link chainOf}; they are submitted, and all builders have them for the next block. */
	async chainOut(...args: Parameters<ChainFixture["chainOf"]>): Promise<Link[]> {
		const chain = this.chainOf(...args);
		await this.submitAll(chain);
		for (const link of chain) await this.sent(link);
		return chain;
	}

	/** They are QUEUED, and tell why; where searchers know them, to nobody. */
	async assertWaiting(links: readonly Link[], reason: WaitReason): Promise<void> {
		for (const link of links) {
			const { status, shared } = await this.reaches(link, "QUEUED");
			assert.equal(status, "UNKNOWN");
			// It may have waited for the same reason before: the last one told counts, once it is.
			await until(`${link.path} waits: ${reason}`, async () => {
				const last = (await this.events(link)).findLast(({ type }) => type === "queued");
				return last !== undefined && last.reason === (shared ? undefined : reason);
			});
		}
	}

	/** So many blocks pass, and they still wait, and none of them was sent meanwhile. */
	async assertStayBack(links: readonly Link[], reason: WaitReason, blocks: number): Promise<void> {
		await this.assertWaiting(links, reason);
		const before = this.timesSent(links);
		for (let i = 0; i < blocks; i += 1) await this.passBlock();
		await this.fence();
		await this.assertWaiting(links, reason);
		assert.deepEqual(this.timesSent(links), before, "they were sent while they waited");
	}

	/** They are out for the next block at `builders` (all unless given), and are all mined in it, in their order. */
	async assertGoOn(links: readonly Signed[], builders?: readonly string[]): Promise<void> {
		for (const link of links) await this.sent(link, builders === undefined ? {} : { builders });
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

	/** Their lives have begun, or begun again, with the next block as the first one. */
	async assertYoung(links: readonly Signed[]): Promise<void> {
		const next = (await this.head()) + 1;
		for (const link of links) await this.event(link, "ready", ({ block }) => block === next);
	}

	/** Waits until all builders have a stranger's transaction: what was to be sent before it is there too. */
	async fence(): Promise<void> {
		const tx = (await this.actor()).sign();
		await this.submit("/fast", tx);
		await this.sent(tx);
	}

	/** How often each of them was sent to each builder. */
	timesSent(links: readonly Signed[]): readonly (readonly number[])[] {
		const { builders } = this.system;
		return links.map((link) => builders.map((builder) => this.deliveries(builder, link).length));
	}

	/** Takes `tx` back by its hash. */
	async cancel(tx: Signed): Promise<void> {
		assert.equal(await this.system.client.call("eth_cancelTransaction", [tx.hash]), true);
	}
}
