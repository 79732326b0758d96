// Cancels by hash of a transaction that two clients have submitted: the relay may not know both.

import assert from "node:assert/strict";
import { STILL_WANTED_REASON } from "../../../../shared/ownership.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { refusal, type Said } from "../wire.ts";
import { type RequestFixture, scenario } from "./requestFixture.ts";

const YES: Said = { result: true };
const NOT_FOUND = refusal("transaction not found or no longer pending");
const STILL_WANTED: Said = {
	error: { code: -32000, message: "taken back for your address", data: { reason: STILL_WANTED_REASON } },
};
const ONE = signedTransaction({ nonce: 0n, by: testAccount(0) });
const { hash: HASH } = ONE;
const STRANGER = { address: "198.51.100.7" };

const cancel = ({ cancels, request }: RequestFixture, changed = {}) => cancels.cancel(HASH, request(changed));

scenario(
	"one of two owners takes it back while the relay has lost it: the relay keeps no end, and the other one's goes on",
	async (fixture) => {
		const { relay, journal, submissions, request } = fixture;
		await submissions.submit(ONE.raw, request());
		await submissions.submit(ONE.raw, request(STRANGER));
		relay.answers = [NOT_FOUND, { result: [{ hash: HASH, status: "UNKNOWN", stage: null }] }];
		await assert.rejects(cancel(fixture), /another address that submitted it still wants it/);
		assert.deepEqual(
			relay.called.map(({ headers }) => headers["x-boost-ends"]),
			[undefined, undefined],
		);
		assert.deepEqual(journal.get(HASH)?.holders, ["relay"]);
		relay.answers = [YES];
		assert.equal(await cancel(fixture, STRANGER), true);
		assert.match(relay.called.at(-1)?.headers["x-boost-ends"] ?? "", /^cancels /, "it has ended for all");
	},
);

scenario(
	"the last owner cancels while the relay is being told of them: it cancels for those that it knows",
	async (fixture) => {
		const { relay, fallback, journal, submissions, request } = fixture;
		await submissions.submit(ONE.raw, request(STRANGER));
		relay.isUnavailable = true;
		await submissions.submit(ONE.raw, request());
		assert.deepEqual(journal.get(HASH)?.holders, ["relay", "fallback"]);
		await assert.rejects(cancel(fixture, STRANGER), /another address that submitted it still wants it/);
		relay.isUnavailable = false;
		assert.equal(journal.rows.get(HASH)?.ownersPending, true);
		relay.onCall = async () => {
			relay.onCall = async () => {};
			journal.rows.change(HASH, (row) => ({ ...row, ownersPending: false }));
		};
		// It does not know the last owner yet when it is asked.
		relay.answers = [NOT_FOUND, STILL_WANTED, YES];
		fallback.answers = [YES];
		assert.equal(await cancel(fixture), true);
		assert.deepEqual(
			relay.called.map(({ method }) => method),
			["eth_cancelTransaction", "eth_cancelTransaction", "eth_cancelTransaction"],
		);
		const end = journal.justEnded(HASH);
		assert.deepEqual([end?.ending, end?.cancelAt.length], ["cancelled", 0]);
	},
);
