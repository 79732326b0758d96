// A pending transaction is replaced by one of another type as by one of its own: blobs and
// authorizations are in no pool of their own, as they are in go-ethereum, where a blob transaction
// and any other exclude each other. Ten percent more on both fees do, and on the blob fee where
// both have blobs; less changes nothing. The same through boost while the relay is down.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { sized } from "../../support/length.ts";
import { RelayClient, type WireAnswer } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { verifiesBlobs } from "../../support/systems.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

type Options = Omit<TxOptions, "by">;

const UNDERPRICED = /^-32000 replacement transaction underpriced/;
/** The error of a submission that has waited too long for the proofs of blobs. */
const TRY_AGAIN = -32603;
const HELD = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI, maxFeePerBlobGas: 10n * GWEI };
const BUMPED = {
	maxFeePerGas: 22n * GWEI,
	maxPriorityFeePerGas: (11n * GWEI) / 10n,
	maxFeePerBlobGas: 11n * GWEI,
};
/** Boost's cancel or the replacement reaches the relay first, where one comes through boost. */
const GONE = /^(REPLACED|CANCELLED)$/;
/** The type of the pending transaction, and of its replacement. */
const PAIRS: readonly (readonly [held: 2 | 3 | 4, fresh: 2 | 3 | 4])[] = [
	[2, 3],
	[3, 2],
	[3, 3],
	[3, 4],
	[4, 3],
	[4, 4],
	[2, 4],
	[4, 2],
];

let fixture: BoostFixture;
let fallback: RelayClient;
before(async () => {
	fixture = await startBoostFixture({
		system: { builder: { checksBlobs: false } },
		// A process that verifies blobs loads a library for seconds first.
		boost: { REQUEST_BUDGET_MS: "60000" },
	});
	fallback = new RelayClient(fixture.fallbackUrl);
	const first = (await fixture.users.actor()).sign({ type: 3, nonce: 1 });
	for (const client of [fixture.system.client, fallback]) await verifiesBlobs(client, first.raw);
});
after(() => fixture?.stop());

/** Each fee a wei short of ten percent, the others well above it. */
function shortOf(held: number, fresh: number): readonly Options[] {
	const names = ["maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas"] as const;
	const counting = held === 3 && fresh === 3 ? names : names.slice(0, 2);
	const high = { ...BUMPED, maxFeePerGas: 80n * GWEI };
	return counting.map((name) => ({ ...high, [name]: BUMPED[name] - 1n }));
}

/** Options of a valid replacement. If only one of both has blobs, the blob fee does not matter. */
function takenIn(held: number, fresh: number): Options {
	return held === 3 && fresh === 3 ? BUMPED : { ...BUMPED, maxFeePerBlobGas: GWEI };
}

function signed(actor: Actor, type: 2 | 3 | 4, options: Options): Signed {
	return actor.sign({ gasLimit: 200_000, ...options, type });
}

/** Boost's answer, once it is another one than to try again: the hash, or code and message. */
async function tried({ raw }: Signed, client: RelayClient): Promise<string> {
	const { result, error } = await until("it is answered", async () => {
		const answer: WireAnswer = await client.ask("eth_sendRawTransaction", [raw], "/fast");
		return answer.error?.code !== TRY_AGAIN && answer;
	});
	return error === undefined ? String(result) : `${error.code} ${error.message}`;
}

/** It is mined, and what it has replaced is not. */
async function isMined(fresh: Signed, held: Signed): Promise<void> {
	const { users, system } = fixture;
	await users.waitUntilSent(fresh);
	await until("the builder has forgotten the other", () => users.liveOrders(system.builder, held) === 0);
	await system.nextBlock();
	await users.reaches(fresh, "INCLUDED");
	assert.match((await users.status(held)).stage ?? "", GONE);
	assert.equal(await users.receipt(held), null);
}

describe("at the relay", () => {
	for (const [of, by] of PAIRS) {
		it(`type ${by} takes the place of type ${of} for ten percent more, and for nothing less`, async () => {
			const { users, system } = fixture;
			const actor = await users.actor();
			const held = signed(actor, of, HELD);
			assert.equal(await tried(held, system.client), held.hash);
			await users.waitUntilSent(held);
			for (const options of shortOf(of, by)) {
				const short = signed(actor, by, options);
				assert.match(await tried(short, system.client), UNDERPRICED);
				assert.equal((await users.status(short)).stage, undefined);
			}
			assert.equal((await users.status(held)).stage, "BROADCAST");
			const fresh = signed(actor, by, takenIn(of, by));
			assert.equal(await tried(fresh, system.client), fresh.hash);
			await isMined(fresh, held);
			assert.equal((await users.status(held)).stage, "REPLACED");
		});
	}
});

describe("through boost while the relay is down", () => {
	for (const [of, by] of sized(PAIRS.slice(0, 4), PAIRS)) {
		it(`type ${by} takes the place of type ${of} at the fallback, and at the relay when it is back`, async () => {
			const { users } = fixture;
			const boost = new RelayClient(fixture.boost.url);
			const actor = await users.actor();
			const held = signed(actor, of, HELD);
			assert.equal(await tried(held, boost), held.hash);
			await users.reaches(held, "BROADCAST");
			await fixture.goesOut();
			try {
				const isThere = async () => (await fallback.stage(held.hash)) === "BROADCAST";
				await until("the fallback has it", isThere);
				for (const options of shortOf(of, by))
					assert.match(await tried(signed(actor, by, options), boost), UNDERPRICED);
				assert.ok(await isThere());
				const fresh = signed(actor, by, takenIn(of, by));
				assert.equal(await tried(fresh, boost), fresh.hash);
				assert.deepEqual(
					[await boost.stage(held.hash), await fallback.stage(held.hash)],
					["REPLACED", "REPLACED"],
				);
				assert.equal((await users.status(held)).stage, "BROADCAST", "the relay does not know yet");
				await fixture.comesBack();
				await until("the relay is notified", async () => GONE.test((await users.status(held)).stage ?? ""));
				await isMined(fresh, held);
				await until("boost says so", async () => (await boost.stage(fresh.hash)) === "INCLUDED");
				assert.match((await boost.stage(held.hash)) ?? "", GONE);
			} finally {
				await fixture.comesBack();
			}
		});
	}
});
