// Brings the bytes of one transaction to a relay in the name of several clients, and shows which
// terms apply to it.

import assert from "node:assert/strict";
import type { SubmissionPath } from "../../../relay/domain/endpoints.ts";
import type { CancelOutcome, SubmitOutcome } from "../../../relay/domain/transaction.ts";
import type { Stage } from "../../../shared/ethereum/statusRecord.ts";
import { termsOf } from "../../../shared/ownership.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { SENDER, type StagesFixture } from "./stagesFixture.ts";

export const TX = privateTransaction();
export const { hash } = TX.tx;
export const [R, S] = [testAccount(7).address, testAccount(8).address];

/** One client's submission, in short: the client, the path, the refund recipient and options. */
export interface Brought {
	readonly by: string;
	readonly path?: SubmissionPath;
	readonly refund?: string | null;
	readonly soft?: boolean;
	readonly hidden?: boolean;
	readonly builders?: readonly string[];
	readonly again?: boolean;
}

const addressOf = (name: string): string | null => (name === "page" ? null : `ip-${name}`);

export async function offer(fixture: StagesFixture, one: Brought): Promise<SubmitOutcome> {
	const { by, path = "fast", refund = null, soft = false, hidden = false, builders = null } = one;
	const outcome = await fixture.pipeline.submit({
		...{
			raw: TX.tx.raw,
			path,
			softCancellations: soft,
			refundRecipient: refund,
			referrer: null,
			isHidden: hidden,
			builders,
		},
		submitterAddress: addressOf(by) ?? "ip-of-visitor",
		...{ requestId: null, again: one.again === true ? hash : null, trace: null },
		address: addressOf(by),
	});
	await fixture.quiet();
	return outcome;
}

export async function bring(fixture: StagesFixture, one: Brought): Promise<void> {
	const outcome = await offer(fixture, one);
	assert.ok(outcome.outcome === "accepted" || outcome.outcome === "known", JSON.stringify(outcome));
}

/** The terms that apply, as searchers, builders and the status page would see them. */
export function holds(fixture: StagesFixture): string {
	const { owners } = fixture.records.get(hash)?.record ?? TX;
	const { path, refundRecipient } = termsOf(owners);
	const pending = fixture.pool.get(hash)?.transaction ?? TX;
	const { sharing, builders } = pending;
	assert.deepEqual(
		[pending.path, pending.refundRecipient],
		[path, refundRecipient],
		"the pool and the record",
	);
	const refund = refundRecipient === R ? "R" : refundRecipient === S ? "S" : "sender";
	return [path, sharing, refund, ...(builders ?? [])].join(" ");
}

export async function cancelBy(fixture: StagesFixture, name: string): Promise<CancelOutcome> {
	const request =
		name === "signature" ? { address: null, signer: SENDER } : { address: addressOf(name), signer: null };
	const answer = await fixture.pipeline.cancel({ hash, ...request });
	await fixture.quiet();
	return answer;
}

export async function stageOf(fixture: StagesFixture): Promise<Stage> {
	return (fixture.records.get(hash)?.record ?? (await fixture.store.archived(hash)))?.stage ?? "DROPPED";
}

export const named = (brought: readonly Brought[]): string =>
	brought
		.map(({ by, path = "fast", refund, hidden, builders }) => {
			const asked = `${refund ? " with a refund" : ""}${hidden ? " hidden" : ""}${builders ? ` to ${builders}` : ""}`;
			return `${by} on /${path}${asked}`;
		})
		.join(", then ");
