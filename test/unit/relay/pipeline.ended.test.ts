// Tests who may submit a cancelled transaction again: an end by addresses binds only these, and an
// end by the sender binds everybody.

import assert from "node:assert/strict";
import { type SubmitOutcome, WATCH_BLOCKS } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { type Brought, bring, cancelBy, hash, holds, named, offer, R } from "./ownersFixture.ts";
import { blocks, cancels, DEAR, type StagesFixture, scenario, toSelf } from "./stagesFixture.ts";

/** The way it ends, and the answers to clients that bring it afterwards, in this order. */
const ENDED: readonly (readonly [
	name: string,
	end: (fixture: StagesFixture) => Promise<unknown>,
	brought: readonly (readonly [Brought, outcome: SubmitOutcome["outcome"]])[],
])[] = [
	[
		"its only address",
		(fixture) => cancelBy(fixture, "a"),
		[
			[{ by: "a" }, "known"],
			[{ by: "a", again: true }, "known"],
			[{ by: "b" }, "rejected"],
			[{ by: "page", again: true }, "rejected"],
			[{ by: "b", again: true }, "accepted"],
			[{ by: "a" }, "known"],
		],
	],
	[
		"its sender's signature",
		(fixture) => cancelBy(fixture, "signature"),
		[
			[{ by: "a" }, "known"],
			[{ by: "b" }, "known"],
			[{ by: "b", again: true }, "known"],
		],
	],
	[
		"its only address, and then its sender's signature",
		async (fixture) => {
			await cancelBy(fixture, "a");
			assert.equal(await cancelBy(fixture, "signature"), "cancelled");
		},
		[
			[{ by: "b" }, "known"],
			[{ by: "b", again: true }, "known"],
		],
	],
	[
		"its only address, before the sender sends another one",
		async (fixture) => {
			await cancelBy(fixture, "a");
			await fixture.take(privateTransaction({ gasLimit: 30_000 }));
		},
		[
			[{ by: "b" }, "known"],
			[{ by: "b", again: true }, "known"],
		],
	],
	[
		"its sender's replacement",
		(fixture) => fixture.take(privateTransaction(DEAR)),
		[[{ by: "b", again: true }, "known"]],
	],
	[
		"its sender's soft cancel",
		async (fixture) => {
			assert.deepEqual(await fixture.take(toSelf()), [cancels(toSelf())]);
		},
		[[{ by: "b", again: true }, "known"]],
	],
];

for (const later of ["at once", "after a restart", "when it is archived"] as const) {
	for (const [name, end, brought] of ENDED) {
		scenario(`ended by ${name}: what others can do ${later}`, async (first) => {
			await bring(first, { by: "a", path: "noreverts", soft: true });
			await end(first);
			let fixture = first;
			if (later === "after a restart") fixture = await first.restart();
			if (later !== "at once") await blocks(fixture, later === "when it is archived" ? WATCH_BLOCKS + 1 : 1);
			for (const [one, expected] of brought) {
				const outcome = await offer(fixture, one);
				assert.equal(outcome.outcome, expected, `${named([one])}${one.again ? " again" : ""}`);
				if (outcome.outcome !== "rejected") continue;
				assert.equal(outcome.rejection.code, "CANCELLED_BY_OTHER");
				assert.match(
					outcome.rejection.message,
					new RegExp(`^transaction was cancelled by another owner; add again=${hash} `),
				);
			}
		});
	}
}

scenario(
	"a transaction submitted again belongs only to clients that want it, and keeps what was asked for",
	async (first) => {
		await bring(first, { by: "a", path: "fullprivacy", refund: R });
		await cancelBy(first, "a");
		await bring(first, { by: "b", again: true });
		assert.equal(holds(first), "fullprivacy never sender");
		assert.deepEqual(first.builders.take().at(-1), "send 0 for 101 to b");
		// The first one's wallet sends it again and again.
		await bring(first, { by: "a" });
		const fixture = await first.restart();
		await blocks(fixture, 1);
		assert.equal(await cancelBy(fixture, "a"), "stillWanted");
		assert.equal(await cancelBy(fixture, "b"), "cancelled");
		assert.deepEqual(
			[(await offer(fixture, { by: "a", again: true })).outcome, (await offer(fixture, { by: "c" })).outcome],
			["known", "rejected"],
		);
	},
);
