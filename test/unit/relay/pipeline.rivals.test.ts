// Tests what a stranger who has signed bytes can't take from an owner who brings them too: his
// place among the owners, and the wallet's cancel, which ends them everywhere only where it is
// mined.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SubmissionPath } from "../../../relay/domain/endpoints.ts";
import { isLive } from "../../../relay/domain/record.ts";
import type { SubmitOutcome } from "../../../relay/domain/transaction.ts";
import { MAX_OWNERS } from "../../../shared/ownership.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { blocks, DEAR, SENDER, StagesFixture, scenario } from "./stagesFixture.ts";

const TX = privateTransaction();
const { hash } = TX.tx;
/** A wallet's cancel, with fees that replace. */
const CANCEL = privateTransaction({ to: SENDER, gasLimit: 21_000, value: 0, ...DEAR });

interface Brought {
	/** `page` has no address. */
	readonly by: string;
	readonly path?: SubmissionPath;
	readonly soft?: boolean;
}

async function bring(fixture: StagesFixture, one: Brought, { tx } = TX): Promise<SubmitOutcome> {
	const { by, path = "fast", soft = false } = one;
	const address = by === "page" ? null : by;
	const outcome = await fixture.pipeline.submit({
		...{
			raw: tx.raw,
			path,
			softCancellations: soft,
			refundRecipient: null,
			referrer: null,
			isHidden: false,
			builders: null,
		},
		submitterAddress: address ?? "192.0.2.99",
		...{ requestId: null, again: null, trace: null },
		address,
	});
	await fixture.quiet();
	return outcome;
}

const softly = (by: string): Brought => ({ by, path: "noreverts", soft: true });

/**
 * The submissions, the client that brings the wallet's cancel, and the kind of that cancel: free,
 * or a replacement that is mined.
 */
const CANCELS: readonly (readonly [readonly Brought[], by: string, "cancels" | "accepted"])[] = [
	[[softly("a")], "a", "cancels"],
	[[softly("a")], "elsewhere", "cancels"],
	[[{ by: "stranger" }, softly("a")], "a", "cancels"],
	[[softly("a"), { by: "stranger", path: "nochecks" }], "a", "cancels"],
	[[{ by: "a" }, softly("stranger")], "a", "accepted"],
	[[softly("stranger"), { by: "a", path: "noreverts" }], "a", "accepted"],
	[[{ by: "a" }, softly("page")], "a", "accepted"],
	[[{ by: "a" }, softly("stranger")], "elsewhere", "accepted"],
	[[softly("a"), softly("b")], "elsewhere", "cancels"],
];

for (const [brought, by, expected] of CANCELS) {
	const name = brought
		.map((one) => `${one.by}${one.soft ? ", with soft cancellations" : ""}`)
		.join(", then ");
	scenario(`brought by ${name}: a self-transfer that ${by} brings ${expected}`, async (first) => {
		for (const one of brought) await bring(first, one);
		const fixture = await first.restart();
		await blocks(fixture, 1);
		assert.deepEqual(await bring(fixture, { by }, CANCEL), { outcome: expected, hash: CANCEL.tx.hash });
		assert.equal(fixture.stage(TX), expected === "cancels" ? "CANCELLED" : "REPLACED");
	});
}

test("a stranger with a network of addresses keeps nobody from being an owner", async () => {
	const fixture = new StagesFixture();
	for (let i = 1; i <= 3 * MAX_OWNERS; i += 1) await bring(fixture, { by: `2001:db8::${i}` });
	const honest = ["192.0.2.1", "192.0.2.2", "2001:db8:1::1"];
	for (const by of honest) await bring(fixture, { by });
	const { record } = fixture.records.get(hash) ?? assert.fail();
	assert.ok(record.owners.length <= MAX_OWNERS + 1, `${record.owners.length} owners`);
	for (const address of honest)
		assert.equal(await fixture.pipeline.cancel({ hash, address, signer: null }), "stillWanted", address);
	assert.ok(isLive(record.stage), "it lives for the others");
});

test("among clients with an address each, the first to come stays", async () => {
	const fixture = new StagesFixture();
	for (let i = 1; i <= MAX_OWNERS + 1; i += 1) await bring(fixture, { by: `192.0.2.${i}` });
	for (const [address, expected] of [
		[`192.0.2.${MAX_OWNERS}`, "stillWanted"],
		[`192.0.2.${MAX_OWNERS + 1}`, "notPending"],
	] as const)
		assert.equal(await fixture.pipeline.cancel({ hash, address, signer: null }), expected);
});
