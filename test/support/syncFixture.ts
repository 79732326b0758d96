// Users who wait for the receipts of what they send to a whole running relay. Answers can be compared with the chain
// and with EIP-7966's wording.

import assert from "node:assert/strict";
import { CancelFixture } from "./cancelFixture.ts";
import type { WireAnswer } from "./relayClient.ts";
import type { Signed } from "./relayFixture.ts";
import { startSystem } from "./startSystem.ts";

export const SYNC = "eth_sendRawTransactionSync";
const NOT_PROCESSED = "The transaction was added to the mempool but wasn't processed";

/** One call under way: `ended` is true once it was answered. */
export interface Sending {
	readonly answer: Promise<WireAnswer>;
	readonly ended: boolean;
}

/** A running relay, seen by users who wait. */
export class SyncFixture extends CancelFixture {
	sync(tx: Pick<Signed, "raw">, path = "/fast", ...timeout: unknown[]): Sending {
		const sending = { answer: this.system.client.ask(SYNC, [tx.raw, ...timeout], path), ended: false };
		const end = () => {
			sending.ended = true;
		};
		sending.answer.then(end, end);
		return sending;
	}

	/** Sends it, and waits until the builder has it. */
	async waiting(tx: Signed, path = "/fast", ...timeout: unknown[]): Promise<Sending> {
		const sending = this.sync(tx, path, ...timeout);
		await this.reaches(tx, "BROADCAST");
		await this.sent(tx);
		assert.equal(sending.ended, false, "it was answered before it was mined");
		return sending;
	}

	async nodeReceipt(tx: Pick<Signed, "hash">): Promise<Record<string, unknown>> {
		const receipt = await this.system.chain.rpc("eth_getTransactionReceipt", [tx.hash]);
		assert.ok(typeof receipt === "object" && receipt !== null, "the node has its receipt");
		return { ...receipt };
	}

	/** It is answered with the node's own receipt. */
	async assertMined({ answer }: Sending, tx: Signed, status = "0x1"): Promise<void> {
		const { result, error } = await answer;
		assert.equal(error, undefined, error?.message);
		assert.deepEqual(result, await this.nodeReceipt(tx));
		assert.equal((result as { status: string }).status, status);
	}

	/** It is answered with `code`, the words of EIP-7966 and then `why`, and its hash. */
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
