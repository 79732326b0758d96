// `npm run why -- <hash>`: for each way in which a transaction can end or wait, what the command
// says of it, asked from a real relay.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { factsOf } from "../../../shared/why/asking.ts";
import { hasLanded, story } from "../../../shared/why/story.ts";
import { REVERTS } from "../../support/contracts.ts";
import { snippet } from "../../support/documents.ts";
import { type Exit, launchRelay } from "../../support/processes.ts";
import { type Actor, ETHER, GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const LIFE_BLOCKS = 3;
const MAIN = "shared/why/main.ts";

let system: TestSystem;
let fixture: RelayFixture;
before(async () => {
	system = await startSystem({
		builders: [{ name: "dev" }, { name: "titan" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	fixture = new RelayFixture(system);
});
after(() => system.stop());

async function newActor(): Promise<Actor> {
	const actor = await fixture.actor(ETHER);
	await fixture.passBlock();
	return actor;
}

interface Case {
	readonly name: string;
	/** Brings it about, and returns its hash. */
	readonly make: () => Promise<Signed>;
	readonly landed: boolean;
	/** Sentences that must be there, and what must not. */
	readonly says: readonly RegExp[];
	readonly not?: RegExp;
}

const CASES: readonly Case[] = [
	{
		name: "it waits for a block, and one builder rejects it",
		async make() {
			const actor = await newActor();
			const titan = fixture.builder("titan");
			titan.setFaults({ reject: true });
			const tx = actor.sign({ maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: 2n * GWEI });
			await fixture.submit("/fast", tx);
			for (const name of ["dev", "titan"])
				await fixture.event(tx, "delivered", ({ builder }) => builder === name);
			titan.setFaults({});
			return tx;
		},
		landed: false,
		says: [
			/^It has not landed yet: it is sent to builders\./,
			/ It was received at \d{4}-\d\d-\d\dT\S+Z, by \/fast, at block \d+\. /,
			/ Its simulation passed for block \d+\. It was not shown to searchers\. /,
			/ It was sent to 2 builders: .*titan rejected it for block \d+/,
			/dev accepted it for block \d+/,
			/ Its fee cap is 20 gwei, and the base fee of block \d+ is [\d.]+ gwei, so it pays the builder 2 gwei for each unit of gas\. /,
			/What to do: wait, since it is sent again for each block until it expires; with a higher priority fee/,
		],
		not: /next one of its sender/,
	},
	{
		name: "its simulation fails",
		async make() {
			const to = await fixture.placeCode(REVERTS);
			const actor = await newActor();
			const tx = actor.sign({ to });
			await fixture.submit("/noreverts", tx);
			await fixture.reaches(tx, "SIMULATION_FAILED");
			return tx;
		},
		landed: false,
		says: [
			/^It has not landed yet: it is failing: execution reverted/,
			/, by a path other than \/fast, at block /,
			/ Its simulation failed for block \d+: execution reverted.* \(EXECUTION_REVERTED\)\. /,
			/ It was sent to no builder\. /,
			/What to do: wait, as it is tried again with each block, or cancel it\.$/,
		],
	},
	{
		name: "its fee cap is under the base fee",
		async make() {
			const actor = await newActor();
			await system.chain.rpc("anvil_setNextBlockBaseFeePerGas", [`0x${(10n * GWEI).toString(16)}`]);
			await fixture.passBlock();
			const tx = actor.sign({ maxFeePerGas: 7n * GWEI });
			await fixture.submit("/fast", tx);
			await until("it waits", async () => (await fixture.status(tx)).state?.startsWith("waiting for"));
			return tx;
		},
		landed: false,
		says: [
			/^It has not landed yet: it is waiting for the base fee to fall: max fee per gas less than block base fee/,
			/ Its fee cap is 7 gwei, and the base fee of block \d+ is 10 gwei: no block can take it until that falls\. /,
			/What to do: raise the fee cap to [\d.]+ gwei, or wait until the base fee falls\.$/,
		],
	},
	{
		name: "an earlier nonce is missing",
		async make() {
			const actor = await newActor();
			const tx = actor.sign({ nonce: 2 });
			await fixture.submit("/fast", tx);
			await fixture.reaches(tx, "QUEUED");
			return tx;
		},
		landed: false,
		says: [
			/^It has not landed yet: it is waiting: an earlier transaction of the sender must go first\./,
			/ It waits: an earlier nonce of its sender is missing\. /,
			/ Its nonce is 2, and the next one of its sender on the chain is 0\. /,
			/What to do: send the transaction with the missing nonce, or raise the fees of the unsent one, or cancel it\.$/,
		],
		not: /fee cap is/,
	},
	{
		name: "it expired, though builders had it",
		async make() {
			const actor = await newActor();
			const tx = actor.sign();
			await fixture.submit("/fast", tx);
			for (let i = 0; i < LIFE_BLOCKS; i += 1) {
				await fixture.waitUntilSent(tx);
				await fixture.passBlock();
			}
			await fixture.reaches(tx, "EXPIRED");
			return tx;
		},
		landed: false,
		says: [
			/^It has not landed: it is expired: no block included it in time\./,
			/ It was sent to 2 builders: /,
			/dev accepted it for blocks \d+ to \d+/,
			/What to do: send it again, with a higher priority fee\.$/,
		],
	},
	{
		name: "another one with its nonce was mined",
		async make() {
			const actor = await newActor();
			const tx = actor.sign();
			await fixture.submit("/fast", tx);
			await fixture.publish(
				actor.sign({ value: 2n, maxFeePerGas: 90n * GWEI, maxPriorityFeePerGas: 9n * GWEI }),
			);
			await fixture.passBlock();
			await fixture.reaches(tx, "DROPPED");
			return tx;
		},
		landed: false,
		says: [/^It has not landed: it is dropped: another transaction with its nonce was mined\./],
		not: /What to do/,
	},
	{
		name: "it was replaced",
		async make() {
			const actor = await newActor();
			const tx = actor.sign();
			await fixture.submit("/fast", tx);
			const by = actor.sign({ maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI });
			await fixture.submit("/fast", by);
			await fixture.reaches(tx, "REPLACED");
			return tx;
		},
		landed: false,
		says: [
			/^It has not landed: it is replaced: another transaction of the sender replaced it\./,
			/ It was replaced by 0x[0-9a-f]{64}\. /,
		],
	},
	{
		name: "it was cancelled",
		async make() {
			const actor = await newActor();
			const tx = actor.sign();
			await fixture.submit("/fast", tx);
			await fixture.waitUntilSent(tx);
			assert.equal(await system.client.call("eth_cancelTransaction", [tx.hash]), true);
			await fixture.reaches(tx, "CANCELLED");
			return tx;
		},
		landed: false,
		says: [
			/^It has not landed: it is cancelled: the sender cancelled it\./,
			/ The relay asked its builders to drop it: [012] of 2 builders confirmed\.$/,
		],
	},
	{
		name: "it is in a block",
		async make() {
			const actor = await newActor();
			const tx = actor.sign();
			await fixture.submit("/fast", tx);
			await fixture.waitUntilSent(tx);
			await system.nextBlock();
			await fixture.reaches(tx, "INCLUDED");
			return tx;
		},
		landed: true,
		says: [/^It landed: it is in block \d+\. It was received at /],
		not: /What to do|fee cap/,
	},
	{
		name: "it is in a block, and reverted there",
		async make() {
			const to = await fixture.placeCode(REVERTS);
			const actor = await newActor();
			const tx = actor.sign({ to });
			await fixture.submit("/nochecks", tx);
			await fixture.waitUntilSent(tx);
			await system.nextBlock();
			await fixture.reaches(tx, "REVERTED");
			return tx;
		},
		landed: true,
		says: [
			/^It landed: it is in block \d+, and reverted there: its execution failed in the block and was undone, and its gas was paid\./,
			/ It was not simulated\. /,
		],
	},
	{
		name: "nobody has seen it",
		make: async () => (await newActor()).sign(),
		landed: false,
		says: [
			/^This server does not know it; .* Check the hash\. .* the chain.* `transaction refused`, with its code\.$/,
		],
	},
	{
		name: "it went to the chain by another way",
		async make() {
			const actor = await newActor();
			const tx = actor.sign();
			await fixture.publish(tx);
			await fixture.passBlock();
			return tx;
		},
		landed: true,
		says: [
			/^This server does not know it; .* It is in block \d+ nevertheless, so another sender gave it to a builder\.$/,
		],
	},
];

for (const { name, make, landed, says, not } of CASES) {
	test(`why: ${name}`, async () => {
		const { hash } = await make();
		const facts = await factsOf(hash, system.client.url, systemClock);
		const text = story(facts);
		for (const part of says) assert.match(text, part);
		if (not !== undefined) assert.doesNotMatch(text, not);
		assert.equal(hasLanded(facts), landed, text);
		assert.doesNotMatch(text, /\n|undefined|null|NaN| {2}|\.\./, "one paragraph, without gaps");
	});
}

test("the command exits with 0 for what landed, with 1 for what did not, and takes a hash in any case", async () => {
	const actor = await newActor();
	const [mined, waiting] = [actor.sign(), actor.sign({ nonce: 1 })];
	await fixture.submit("/fast", mined);
	await fixture.waitUntilSent(mined);
	await system.nextBlock();
	await fixture.reaches(mined, "INCLUDED");
	await fixture.submit("/fast", waiting);
	for (const [hash, code, said] of [
		[mined.hash, 0, /^It landed: [^\n]+\n$/],
		[waiting.hash.toUpperCase().replace("X", "x"), 1, /^It has not landed yet: [^\n]+\n$/],
	] as const) {
		const exit = await why(hash, system.client.url);
		assert.deepEqual([exit.code, exit.stderr], [code, ""]);
		assert.match(exit.stdout, said);
	}
});

test("the command of the document", async () => {
	const { hash } = (await newActor()).sign();
	const line = snippet("docs/operators.md", "npm run why").replace("0x…", hash);
	const { code, stdout } = await launchRelay({ line, env: { RELAY_URL: system.client.url } }).ended();
	assert.equal(code, 1);
	assert.match(stdout, /^This server does not know it/m);
});

test("what can't be asked is an error that says what was expected, and exits with 2", async () => {
	const hash = `0x${"ab".repeat(32)}`;
	for (const [asked, url, said] of [
		[
			"0x1234",
			system.client.url,
			/^npm run why: that is no hash: expected the hash of a transaction, 32 bytes as 0x hex\n$/,
		],
		[
			hash,
			"localhost:8080",
			/^npm run why: RELAY_URL is not valid: expected an http or https URL, for example RELAY_URL=http:[^\n]+\n$/,
		],
		[
			hash,
			"http://user:secretsecret@127.0.0.1:9/secretsecret",
			/^npm run why: 127\.0\.0\.1:9 does not answer as a relay or boost \(nothing listens there: [^\n]*RELAY_URL[^\n]*\): expected [^\n]*RELAY_URL=http:[^\n]+\n$/,
		],
		[hash, system.chain.url, /^npm run why: 127\.0\.0\.1:\d+ does not answer as a relay or boost [^\n]*\n$/],
	] as const) {
		const exit = await why(asked, url);
		assert.deepEqual([exit.code, exit.stdout], [2, ""], exit.stderr);
		assert.match(exit.stderr, said);
		assert.doesNotMatch(exit.stderr, /secretsecret/);
	}
});

function why(hash: string, url: string): Promise<Exit> {
	return launchRelay({ entry: MAIN, args: [hash], env: { RELAY_URL: url } }).ended();
}
