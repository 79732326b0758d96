// Bids for tests of the fan-out, by name, nonce and block, and what a builder has seen of them.

import assert from "node:assert/strict";
import type { OutgoingBundle } from "../../../../relay/domain/bundle.ts";
import type { BundleDelivery } from "../../../../relay/domain/bundleStatus.ts";
import { privateTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import type { FakeBuilder } from "./fakeBuilder.ts";

/** What is bid on. */
export const TARGET = privateTransaction();
export const REFUND = { percent: 90, recipient: testAccount(9).address, bodyIdx: 0, of: null };

/** A bid on TARGET; `nonce` tells one backrun from another. */
export function bid(
	name: string,
	options: { nonce?: number; block?: number; refund?: null; client?: string; isPlain?: boolean } = {},
): OutgoingBundle {
	const { client = "192.0.2.1", isPlain = false } = options;
	const backrun = signedTransaction({ by: testAccount(8), nonce: options.nonce ?? 0 });
	return {
		name,
		transactions: [
			{ tx: TARGET.tx, mayRevert: true, mayDrop: false },
			{ tx: backrun, mayRevert: false, mayDrop: true },
		],
		block: options.block ?? 101,
		refund: options.refund === undefined ? REFUND : options.refund,
		...{ client, isPlain },
	};
}

/** Keeps what it is told, as `builder kind answer`. */
export function listener() {
	const told: string[] = [];
	const answered = ({ builder, kind, answer, ms, at }: BundleDelivery) => {
		assert.ok(Number.isInteger(ms) && ms >= 0 && at > 0);
		told.push(`${builder} ${kind} ${answer}`);
	};
	return { told, answered };
}

/** Told of nothing. */
export const quiet = () => {};

/** The raw backruns that the builder has seen, by the nonces that {@link bid} was given. */
export function nonces(builder: FakeBuilder, upTo: number): number[] {
	const raws = Array.from({ length: upTo }, (_, nonce) => bidRaw(nonce));
	return builder.seen.flatMap(({ body }) => {
		const text = body.toString();
		const found = raws.findIndex((raw) => text.includes(raw));
		return found < 0 ? [] : [found];
	});
}

/** The raw backrun of a {@link bid} with that nonce, in hex. */
export function bidRaw(nonce: number): string {
	return signedTransaction({ by: testAccount(8), nonce }).raw.toString("hex");
}
