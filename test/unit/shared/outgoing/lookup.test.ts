// How the addresses of upstreams are found, on a real name server: a name that nobody answers for
// holds up no other, and what was found last is used until there is something newer.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { systemClock } from "../../../../shared/clock.ts";
import { addressFinder, createLookup } from "../../../../shared/outgoing/lookup.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { type NameServer, startNameServer } from "../../../support/nameServer.ts";
import { until } from "../../../support/until.ts";

let names: NameServer;
let folder: string;
before(async () => {
	names = await startNameServer();
	folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
});
after(async () => {
	await names.stop();
	rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => names.reset());

const find = (lookup: LookupFunction, host: string) => addressFinder(lookup)(host);

function create(clock = systemClock, hosts = ""): LookupFunction {
	const hostsFile = join(folder, "hosts");
	writeFileSync(hostsFile, hosts);
	return createLookup({ servers: [names.address], hostsFile }, { clock });
}

test("both kinds of address are found, and a name of one kind only", async () => {
	names.knows("both.test", ["10.0.0.1", "10.0.0.2", "fd00::1"]);
	names.knows("old.test", ["10.0.0.3"]);
	names.knows("new.test", ["fd00::2"]);
	const lookup = create();
	assert.deepEqual((await find(lookup, "both.test")).toSorted(), ["10.0.0.1", "10.0.0.2", "fd00::1"]);
	assert.deepEqual(await find(lookup, "old.test"), ["10.0.0.3"]);
	assert.deepEqual(await find(lookup, "new.test"), ["fd00::2"]);
	assert.deepEqual(await find(lookup, "127.0.0.9"), ["127.0.0.9"]);
	assert.deepEqual(await find(lookup, "::1"), ["::1"]);
	await assert.rejects(find(lookup, "none.test"), { code: "ENOTFOUND" });
});

test("the file of hosts comes first, and localhost needs nothing", async () => {
	names.knows("here.test", ["10.0.0.1"]);
	const lookup = create(
		systemClock,
		"# a comment\n10.9.9.9\tthere.test  HERE.test # behind it\n::5 here.test\n",
	);
	assert.deepEqual(await find(lookup, "here.test"), ["10.9.9.9", "::5"]);
	assert.deepEqual(await find(lookup, "localhost"), ["127.0.0.1", "::1"]);
	assert.deepEqual(names.asked, []);
});

test("names that no server answers for hold up no other, and are asked once at a time", async () => {
	names.knows("well.test", ["10.0.0.1"]);
	const lookup = create();
	const mute = Array.from({ length: 40 }, (_, i) => find(lookup, `mute${i % 8}.test`));
	const failed = Promise.allSettled(mute);
	await until(
		"the mute names are asked for",
		() => names.asked.filter((one) => one.startsWith("mute")).length >= 16,
	);
	const begun = performance.now();
	assert.deepEqual(await find(lookup, "well.test"), ["10.0.0.1"]);
	assert.ok(performance.now() - begun < 500, `${performance.now() - begun} ms`);
	for (const one of await failed) {
		assert.equal(one.status === "rejected" && (one.reason as { code?: string }).code, "ETIMEOUT");
	}
	// Both kinds of each name are asked for, twice at most.
	assert.ok(names.asked.filter((one) => one === "mute0.test").length <= 4, names.asked.join(" "));
});

test("what was found is used for its time to live, and after it as long as nobody answers", async () => {
	const clock = new ManualClock();
	names.knows("moving.test", ["10.0.0.1"], 30);
	const lookup = create(clock);
	assert.deepEqual(await find(lookup, "moving.test"), ["10.0.0.1"]);
	const before = names.asked.length;
	await clock.advance(29_000);
	assert.deepEqual(await find(lookup, "moving.test"), ["10.0.0.1"]);
	assert.equal(names.asked.length, before);
	await clock.advance(2_000);
	names.knows("moving.test", ["10.0.0.2"], 30);
	assert.deepEqual(await find(lookup, "moving.test"), ["10.0.0.2"]);
	await clock.advance(31_000);
	names.silent("moving.test");
	const finding = find(lookup, "moving.test");
	await until("it is asked again", () => names.asked.length > before + 2);
	await clock.advance(200);
	assert.deepEqual(await finding, ["10.0.0.2"]);
	names.forgets("moving.test");
	await until("the silent question has ended", async () => {
		const gone = find(lookup, "moving.test");
		await clock.advance(200);
		return (await gone).length === 1;
	});
});

test("a socket connects by it", async () => {
	const { createServer, connect } = await import("node:net");
	names.knows("loop.test", ["127.0.0.1"]);
	const server = createServer((socket) => socket.end("hello"));
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as { port: number };
	const socket = connect({ host: "loop.test", port, lookup: create() });
	let text = "";
	for await (const chunk of socket) text += String(chunk);
	assert.equal(text, "hello");
	await new Promise((resolve) => server.close(resolve));
});
