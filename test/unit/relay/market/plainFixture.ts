// The market with plain bundles. A transaction is named by a number: `1` is the one of its own signer, told as `t1`.

import type { BundleOutcome, PlainBundleRequest } from "../../../../relay/domain/bundle.ts";
import {
	rawTransaction,
	signedTransaction,
	type TestAccount,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";
import { AuctionFixture } from "./auctionFixture.ts";

/** A transaction by its number, or made up otherwise. */
type Entry = number | TxOptions;

export interface PlainOptions extends Partial<Omit<PlainBundleRequest, "blocks" | "body">> {
	/** The first and last block as they are asked for. */
	readonly first?: number;
	readonly last?: number;
	/** Numbers of those that may revert. */
	readonly mayRevert?: readonly number[];
}

export class PlainFixture extends AuctionFixture {
	signerOf(label: number): TestAccount {
		return testAccount(300 + label);
	}

	/** The transaction of this number, for a block that holds it. */
	mined(label: number) {
		return { tx: signedTransaction({ by: this.signerOf(label), nonce: 0 }) };
	}

	/** Sends one bundle of these, by `me` unless said. */
	plainBundle(entries: readonly Entry[], options: PlainOptions = {}): Promise<BundleOutcome> {
		const { first, last, mayRevert = [], ...rest } = options;
		const body = entries.map((entry) => {
			if (typeof entry !== "number") return { raw: rawTransaction(entry), canRevert: false };
			this.label(this.mined(entry).tx.hash, `t${entry}`);
			const raw = rawTransaction({ by: this.signerOf(entry), nonce: 0 });
			return { raw, canRevert: mayRevert.includes(entry) };
		});
		return this.submit({
			...{ owner: "me", network: rest.owner ?? "me", uuid: null, builders: null, refund: null, ...rest },
			blocks: { first: numberOrNull(first), last: numberOrNull(last) },
			body,
		});
	}

	/** Sends one, and fails where it is refused; answers its hash. */
	async taken(entries: readonly Entry[], options: PlainOptions = {}): Promise<string> {
		const outcome = await this.plainBundle(entries, options);
		if (outcome.outcome !== "accepted") throw new Error(outcome.message);
		return outcome.hash;
	}

	/** Sends one that is refused; answers `CODE message`. */
	async refused(entries: readonly Entry[], options: PlainOptions = {}): Promise<string> {
		const outcome = await this.plainBundle(entries, options);
		if (outcome.outcome !== "refused") throw new Error("accepted");
		return `${outcome.code} ${outcome.message}`;
	}

	/** What the builders were told since the last time; a bundle that they are to forget is `it`. */
	lines(): string[] {
		return this.builders.take().map((line) => line.replace(/bundle \S+/, "it"));
	}

	/** What was simulated since the last time: `t1 t2 in 101`. */
	tried(): string[] {
		return this.simulations.plain.splice(0).map(({ labels, block }) => `${labels} in ${block.number}`);
	}

	/** Under how many names bundles have gone out. */
	get names(): number {
		return new Set(this.builders.sent.map(({ name }) => name)).size;
	}

	/** The node's next answers about accounts wait until what this returns is called. */
	holdAccounts(): () => void {
		let open = () => {};
		this.accounts.gate = new Promise((resolve) => {
			open = resolve;
		});
		return () => {
			this.accounts.gate = Promise.resolve();
			open();
		};
	}
}

function numberOrNull(block: number | undefined): bigint | null {
	return block === undefined ? null : BigInt(block);
}
