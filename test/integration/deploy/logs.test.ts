// Tests the log lines that an operator finds by a transaction's hash, at the level info, and that
// no line has a secret.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { createLogger } from "../../../shared/log.ts";
import { REVERTS } from "../../support/contracts.ts";
import { RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

interface Line {
	readonly level: number;
	readonly msg: string;
	readonly hash?: string;
	readonly path?: string;
	readonly code?: string | number;
	readonly block?: number;
	readonly ms?: number;
	readonly reason?: string;
	readonly upstream?: string;
}

const LIFE_BLOCKS = 3;

const texts: string[] = [];
let system: TestSystem;
let fixture: RelayFixture;
before(async () => {
	const log = createLogger("info", "relay", { write: (text: string) => void texts.push(text) });
	system = await startSystem({
		log,
		builders: ["dev", "titan"].map((name) => ({ name, fullPrivacy: true })),
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	fixture = new RelayFixture(system);
});
after(() => system.stop());

function linesOf({ hash }: Signed): readonly Line[] {
	return texts.map((text) => JSON.parse(text) as Line).filter((line) => line.hash === hash);
}

async function said(tx: Signed, ...messages: readonly string[]): Promise<readonly Line[]> {
	const told = () => linesOf(tx).map(({ msg }) => msg);
	await until(`${messages.at(-1)} in the log`, () => told().at(-1) === messages.at(-1));
	assert.deepEqual(told(), messages);
	return linesOf(tx);
}

it("logs a transaction's life: accepted, sent, mined, with its path, blocks and times", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign();
	await fixture.submit("/fullprivacy", tx);
	await fixture.waitUntilSent(tx);
	const block = await system.nextBlock();
	await fixture.reaches(tx, "INCLUDED");
	const lines = await said(tx, "transaction accepted", "transaction sent to builders", "transaction mined");
	for (const { level, path } of lines) assert.deepEqual([level, path], [30, "fullprivacy"]);
	const [, sent, mined] = lines;
	assert.equal(mined?.block, block);
	assert.ok((sent?.ms ?? -1) >= 0 && (mined?.ms ?? -1) >= (sent?.ms ?? 0));
});

it("logs a failing transaction and its cancel", async () => {
	const actor = await fixture.actor();
	const to = await fixture.placeCode(REVERTS);
	await fixture.passBlock();
	const tx = actor.sign({ to, gasLimit: 100_000n });
	await fixture.submit("/fast", tx);
	await fixture.reaches(tx, "SIMULATION_FAILED");
	await system.client.call("eth_cancelTransaction", [tx.hash]);
	const held = "transaction not sent: its simulation fails";
	const [, failed] = await said(tx, "transaction accepted", held, "transaction cancelled");
	assert.equal(failed?.code, "EXECUTION_REVERTED");
});

it("logs by name the builder that rejects a transaction, and where it did not land what each has answered", async () => {
	const actor = await fixture.actor();
	const first = (await fixture.passBlock()) + 1;
	const titan = fixture.builder("titan");
	titan.setFaults({ reject: { code: -32099, message: "0x02f8 is no good" } });
	const tx = actor.sign();
	await fixture.submit("/fast", tx);
	for (let block = first; block < first + LIFE_BLOCKS; block += 1) {
		for (const name of ["dev", "titan"])
			await fixture.event(tx, "delivered", ({ builder, block: at }) => builder === name && at === block);
		await fixture.passBlock();
	}
	const [, , refusal, expired] = await said(
		tx,
		...["transaction accepted", "transaction sent to builders", "transaction rejected by a builder"],
		"transaction expired",
	);
	titan.setFaults({});
	assert.deepEqual([refusal?.upstream, refusal?.block], ["titan", first]);
	const blocks = `blocks ${first} to ${first + LIFE_BLOCKS - 1}`;
	const answers = (expired?.reason ?? "").replace("sent to 2 builders: ", "").split(", ").sort();
	assert.deepEqual(answers, [`dev accepted it for ${blocks}`, `titan rejected it for ${blocks}`]);
	const told = texts.map((text) => JSON.parse(text) as Line).filter(({ upstream }) => upstream === "titan");
	assert.deepEqual(told.map(({ msg, code }) => [msg, code]).sort(), [
		["builder rejects requests", -32099],
		["transaction rejected by a builder", undefined],
	]);
});

it("logs a refused transaction with the code, even if it has no hash", async () => {
	const poor = await fixture.actor(0n);
	await fixture.passBlock();
	const tx = poor.sign({ value: 5n });
	await assert.rejects(system.client.send(tx.raw, "/nochecks"), /insufficient funds/);
	const [refused] = await said(tx, "transaction refused");
	assert.deepEqual([refused?.code, refused?.path], ["INSUFFICIENT_FUNDS", "nochecks"]);
	await assert.rejects(system.client.send("0x02c0", "/fast"));
	const last = JSON.parse(texts.at(-1) ?? "{}") as Line;
	assert.deepEqual([last.msg, last.code, last.hash], ["transaction refused", "UNDECODABLE", undefined]);
});

it("no log line has raw bytes, a signature or a key", () => {
	const all = texts.join("");
	for (const [secret] of all.matchAll(/0x[0-9a-f]{65,}|privateKey|0x02f8/gi))
		assert.fail(secret.slice(0, 20));
});
