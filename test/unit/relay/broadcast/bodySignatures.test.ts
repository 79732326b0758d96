// Every body has its own valid signature, made once, however many builders get the body and however
// often, with a thread and without.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { BodySignatures } from "../../../../relay/broadcast/bodySignatures.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { createBodySigner, signHash, verifyBody } from "../../../../shared/ethereum/signatures.ts";
import { SignatureWork } from "../../../../shared/ethereum/signatureWork.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { dispatch, fanoutFixtures, seen } from "./fanoutFixture.ts";

const { startBuilder, fixture } = fanoutFixtures();
const { keyHex: key, address } = testAccount(42);

const threaded = new SignatureWork({ threaded: true }, { clock: systemClock, log: silentLogger });
await threaded.start();
after(() => threaded.stop());

/** Those of `work`, and how many were made. */
function counted(work: Pick<SignatureWork, "sign">) {
	const made = { count: 0 };
	const sign: SignatureWork["sign"] = (hash, secret) => {
		made.count += 1;
		return work.sign(hash, secret);
	};
	return { made, work: { sign } };
}

for (const [how, real] of [
	["at once", { sign: signHash }],
	["by a thread", threaded],
] as const) {
	test(`${how}: one signature a body; the oldest are forgotten and made again`, async () => {
		const { made, work } = counted(real);
		const signatures = new BodySignatures({ key, kept: 3 }, { work });
		const bodies = Array.from({ length: 4 }, (_, i) => Buffer.from(`body ${i}`));
		const all = async (...indexes: readonly number[]): Promise<number> => {
			const before = made.count;
			const wanted = indexes.map((i) => bodies[i] ?? Buffer.alloc(0));
			const signed = await Promise.all(wanted.map((body) => signatures.signed(body)));
			assert.deepEqual(
				signed,
				wanted.map((body) => ({ body, signature: createBodySigner(key).sign(body) })),
			);
			return made.count - before;
		};
		assert.equal(await all(0, 0, 1, 2, 1), 3);
		assert.equal(await all(2, 1, 0), 0);
		assert.equal(await all(3), 1);
		assert.equal(await all(1, 2, 3), 0);
		assert.equal(await all(0), 1);
		assert.equal(await all(0, 2, 3, 1), 1);
	});

	test(`${how}: builders get each body with its own signature, made once for all builders and heads where it is the same`, async () => {
		const builders = [await startBuilder(), await startBuilder()] as const;
		const { made, work } = counted(real);
		const rows = builders.map((builder, i) => builder.row(`b${i}`));
		const { fanout } = fixture(rows, { key, work });
		const [bundled, whole] = [
			privateTransaction(),
			privateTransaction({ by: testAccount(3), path: "nochecks" }),
		];
		for (const block of [101, 102]) {
			for (const transaction of [bundled, whole]) fanout.send(dispatch(transaction, block), ["b0", "b1"]);
			await until("an empty lane", () => fanout.depth === 0);
		}
		const [one = [], other = []] = await Promise.all(builders.map((builder) => seen(builder, 4)));
		const bodiesOf = (requests: typeof one) => requests.map(({ body }) => String(body)).sort();
		assert.deepEqual(bodiesOf(one), bodiesOf(other));
		for (const { body, signature } of [...one, ...other]) {
			const checked = verifyBody(signature, body);
			assert.equal(checked.ok && checked.address, address.toLowerCase());
		}
		// A bundle names its block, a private transaction does not.
		assert.equal(made.count, 3);
	});
}
