// `npm start` as a process: what it says from its first second to its end, and which ports it takes.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type Server } from "node:net";
import { after, before, it } from "node:test";
import { fileURLToPath } from "node:url";
import { cast } from "../../support/castCommand.ts";
import { until } from "../../support/until.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const NAMES = ["CHAIN_PORT", "RELAY_PORT", "BOOST_PORT", "FALLBACK_PORT", "BUILDER_PORT"];

interface Run {
	readonly child: ChildProcess;
	text(): string;
	readonly code: Promise<number | null>;
}

function start(env: Readonly<Record<string, string>>): Run {
	const { PATH, HOME, TMPDIR } = process.env;
	const child = spawn(process.execPath, [...process.execArgv, "test/devnet/main.ts"], {
		cwd: ROOT,
		stdio: ["ignore", "pipe", "pipe"],
		env: { PATH, HOME, TMPDIR, ...env },
	});
	let text = "";
	for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => (text += data));
	const code = new Promise<number | null>((resolve) => child.once("close", resolve));
	return { child, text: () => text, code };
}

/** Ports that are free now, by setting. */
async function freePorts(): Promise<Record<string, string>> {
	const servers = await Promise.all(
		NAMES.map(
			() =>
				new Promise<Server>((resolve) => {
					const server = createServer().listen(0, "127.0.0.1", () => resolve(server));
				}),
		),
	);
	const ports = servers.map((server) => String((server.address() as { port: number }).port));
	await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
	return Object.fromEntries(NAMES.map((name, i) => [name, ports[i] ?? ""]));
}

let ports: Record<string, string>;
let run: Run;
before(async () => {
	ports = await freePorts();
	run = start({ ...ports, SLOT_SECONDS: "1" });
});
after(async () => {
	run.child.kill("SIGKILL");
	await run.code;
});

it("tells what it starts, where all of it is, and the keys that have funds", async () => {
	await until("its first line", () => run.text().startsWith("Starting a dev chain"));
	await until("its welcome", () => run.text().includes("Stop with Ctrl-C"), 60_000);
	for (const port of Object.values(ports)) assert.ok(run.text().includes(port), port);
	assert.equal(run.text().match(/^ {2}0x[0-9a-fA-F]{40} {2}0x[0-9a-f]{64}$/gm)?.length, 10);
	assert.ok(!run.text().includes("\u001b["), "no colours where it is no terminal");
});

it("tells each transaction: by whom it was taken, and its block", async () => {
	const key = /^ {2}0x\w{40} {2}(0x\w{64})$/m.exec(run.text())?.[1] ?? "";
	const to = `0x${"de".repeat(20)}`;
	const url = `http://127.0.0.1:${ports.BOOST_PORT}/fast`;
	const sent = await cast("send", "--rpc-url", url, "--private-key", key, "--value", "1ether", to);
	assert.equal(sent.code, 0, sent.stderr);
	for (const told of [
		/0x\w{8}… {2}boost: taken by the relay \(\/fast\)/,
		/0x\w{8}… {2}the relay: sent to builders \(\/fast, block \d+, [\d.]+ s\)/,
		/0x\w{8}… {2}the relay: mined \(\/fast, block \d+, [\d.]+ s\)/,
	])
		await until(`${told}`, () => told.test(run.text()));
});

it("names each port that is taken, and ends", async () => {
	const second = start(ports);
	assert.equal(await second.code, 1);
	for (const name of NAMES)
		assert.match(
			second.text(),
			new RegExp(`^npm start: port ${ports[name]}, for [a-z ]+, is taken: .* set ${name} `, "m"),
		);
	const bad = start({ BOOST_PORT: "http" });
	assert.equal(await bad.code, 1);
	assert.match(bad.text(), /^npm start: BOOST_PORT is not valid: expected a port/);
});

it("ends quietly by Ctrl-C, which reaches the relay as well", async () => {
	const before = run.text();
	const relay = Number(/^ {2}kill -9 (\d+)$/m.exec(before)?.[1]);
	run.child.kill("SIGINT");
	process.kill(relay, "SIGINT");
	assert.equal(await run.code, 0);
	assert.equal(run.text().slice(before.length).trim(), "Stopping.");
});
