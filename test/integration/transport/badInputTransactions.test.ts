// Tests bad transactions against a running relay: broken bytes, and whole ones that are not for this chain or
// account. Each gets its exact answer, what is just within a rule is accepted, and the relay is well afterwards.

import { after, before, test } from "node:test";
import { type BadInputFixture, startFixture } from "./badInput/fixture.ts";
import { testCallRows } from "./badInput/rows.ts";
import { ruleRows } from "./badInput/rules.ts";
import { prepareAccounts } from "./badInput/standing.ts";
import { ENCODING_ROWS } from "./badInput/transactionEncoding.ts";
import { ACCOUNT_RULES } from "./badInput/transactionRules.ts";
import { SIZE_RULES } from "./badInput/transactionSizes.ts";

const RULE_ROWS = ruleRows([...ACCOUNT_RULES, ...SIZE_RULES], 1_000);

let fixture: BadInputFixture;
before(async () => {
	// With the usual limit a blob transaction that is too large could not even be sent.
	fixture = await startFixture({ env: { MAX_BODY_BYTES: String(4 * 1024 * 1024) } });
	await prepareAccounts(fixture.system.chain, RULE_ROWS);
});
after(() => fixture.stop());

testCallRows(ENCODING_ROWS, () => fixture);
testCallRows(
	RULE_ROWS.map(({ row }) => row),
	() => fixture,
	(hash) => fixture.settled(String(hash)),
);

test("the relay is well after all of it", () => fixture.stillWell());
