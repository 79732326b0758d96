// docs/deploy/haproxy.cfg in a real HAProxy, where one is installed: who gets a request, what does
// not get through, and whose address is named. Only ports and the name server are others.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Agent, request } from "undici";
import { WebSocket, WebSocketServer } from "ws";
import type { PublicStatus } from "../../../boost-proxy/ingress/operators.ts";
import { ended } from "../../devnet/devSystem.ts";
import { freePort } from "../../devnet/freePort.ts";
import { filled, textOf } from "../../support/documents.ts";
import { type NameServer, startNameServer } from "../../support/nameServer.ts";
import { startNodeProxy } from "../../support/nodes.ts";
import { startBoostProcess } from "../../support/processes.ts";
import { startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** A machine need not have it for the tests. */
const HAS_HAPROXY = spawnSync("haproxy", ["-v"]).error === undefined;
const skip = HAS_HAPROXY ? false : "haproxy is not installed";

/** A server at an address of its own, as a container's. */
interface Container {
	readonly name: string;
	isReady: boolean;
	isUp: boolean;
	/** Those of the last request that was no check. */
	headers: IncomingHttpHeaders;
	readonly server: Server;
}

const folder = mkdtempSync(join(tmpdir(), "leeward-haproxy-"));
const containers: Container[] = [];
let names: NameServer;
let haproxy: ChildProcess;
/** Its log. */
let logged = "";
/**
 * The ports of the balancer, and of the containers too, each at its own address: compose has 8080
 * and 8081.
 */
let relayPort = 0;
let boostPort = 0;

before(async () => {
	if (!HAS_HAPROXY) return;
	[relayPort, boostPort] = [await freePort(), await freePort()];
	names = await startNameServer();
	for (const [name, port, address] of [
		["relay 1", relayPort, "127.0.0.2"],
		["relay 2", relayPort, "127.0.0.3"],
		["boost 1", boostPort, "127.0.0.2"],
		["boost 2", boostPort, "127.0.0.3"],
	] as const)
		containers.push(await container(name, port, address));
	names.knows("relay", ["127.0.0.2", "127.0.0.3"], 1);
	names.knows("boost", ["127.0.0.2", "127.0.0.3"], 1);
	const file = join(folder, "haproxy.cfg");
	const config = filled(
		textOf("docs/deploy/haproxy.cfg"),
		["127.0.0.11:53", names.address],
		["bind :8081", `bind 127.0.0.1:${boostPort}`],
		["bind :8080", `bind 127.0.0.1:${relayPort}`],
	);
	writeFileSync(file, config.replaceAll(":8080", `:${relayPort}`).replaceAll(":8081", `:${boostPort}`));
	haproxy = spawn("haproxy", ["-db", "-f", file], { stdio: ["ignore", "pipe", "ignore"] });
	haproxy.stdout?.on("data", (text) => (logged = `${logged}${text}`.slice(-4_000)));
	await until("both kinds are found", async () => {
		const found = await Promise.all([asked(relayPort), asked(boostPort)]);
		return found.every(({ status }) => status === 200);
	});
});
after(async () => {
	rmSync(folder, { recursive: true, force: true });
	if (!HAS_HAPROXY) return;
	await ended(haproxy, "SIGKILL");
	await names.stop();
	await endContainers();
});

async function endContainers(): Promise<void> {
	for (const { server } of containers) {
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	}
}

async function container(name: string, port: number, address: string): Promise<Container> {
	const server = createServer((request, response) => {
		if (request.url === "/readyz") response.statusCode = one.isReady ? 200 : 503;
		else if (request.url === "/livez") response.statusCode = one.isUp ? 200 : 503;
		else one.headers = request.headers;
		response.end(name);
	});
	new WebSocketServer({ server }).on("connection", (socket) => {
		socket.once("message", (text) => socket.send(`${name} has ${text}`));
	});
	const one: Container = { name, isReady: true, isUp: true, headers: {}, server };
	await new Promise<void>((resolve) => server.listen(port, address, resolve));
	return one;
}

function named(name: string): Container {
	const found = containers.find((one) => one.name === name);
	assert.ok(found !== undefined, name);
	return found;
}

/** Status 0: nothing listens. */
async function asked(port: number, path = "/", headers: Record<string, string> = {}) {
	const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers }).catch(() => null);
	return { status: answer?.status ?? 0, text: (await answer?.text()) ?? "" };
}

/** The names of the servers that answer ten requests. */
async function whoAnswers(port: number): Promise<string> {
	const answers = await Promise.all(Array.from({ length: 10 }, () => asked(port)));
	return [...new Set(answers.map(({ text }) => text))].sort().join();
}

test("each request goes to one that is ready, as it is now", { skip }, async () => {
	for (const [kind, port] of [
		["relay", relayPort],
		["boost", boostPort],
	] as const) {
		await until("both serve", async () => (await whoAnswers(port)) === `${kind} 1,${kind} 2`);
		named(`${kind} 1`).isReady = false;
		await until("the other one alone", async () => (await whoAnswers(port)) === `${kind} 2`);
		named(`${kind} 1`).isReady = true;
		await until("both again", async () => (await whoAnswers(port)) === `${kind} 1,${kind} 2`);
	}
});

test("a boost instance or a relay that is up answers while none is ready", { skip }, async () => {
	for (const one of containers) one.isReady = false;
	for (const kind of ["relay", "boost"]) named(`${kind} 2`).isUp = false;
	await until("the relay that is up", async () => (await whoAnswers(relayPort)) === "relay 1");
	await until("the boost that is up", async () => (await whoAnswers(boostPort)) === "boost 1");
	for (const one of containers) one.isReady = one.isUp = true;
	await until("all again", async () => (await whoAnswers(relayPort)) === "relay 1,relay 2");
});

test("a container that comes later is found, one that goes is left out", { skip }, async () => {
	names.knows("relay", ["127.0.0.3"], 1);
	await until("the other one alone", async () => (await whoAnswers(relayPort)) === "relay 2");
	names.knows("relay", ["127.0.0.2", "127.0.0.3"], 1);
	await until("both again", async () => (await whoAnswers(relayPort)) === "relay 1,relay 2");
});

test("what relays have for each other is not reached from outside", { skip }, async () => {
	for (const port of [relayPort, boostPort]) {
		for (const path of ["/internal", "/internal/", "/internal/x", "/%69nternal", "/internal?a=b"])
			assert.equal((await asked(port, path)).status, 404, path);
		assert.equal((await asked(port, "/internals")).status, 200);
	}
});

test("the client's address is the last entry, behind what came", { skip }, async () => {
	named("boost 2").isReady = false;
	await until("boost 1 alone", async () => (await whoAnswers(boostPort)) === "boost 1");
	await asked(boostPort, "/fast");
	assert.equal(named("boost 1").headers["x-forwarded-for"], "127.0.0.1");
	await asked(boostPort, "/fast", { "x-forwarded-for": "192.0.2.1" });
	assert.equal(named("boost 1").headers["x-forwarded-for"], "192.0.2.1, 127.0.0.1");
	named("boost 2").isReady = true;
});

test("a websocket is passed on", { skip }, async () => {
	for (const [kind, port] of [
		["relay", relayPort],
		["boost", boostPort],
	] as const) {
		const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
		socket.once("open", () => socket.send("hello"));
		const [answer] = await once(socket, "message");
		assert.match(String(answer), new RegExp(`^${kind} [12] has hello$`));
		socket.terminate();
	}
});

test("a real relay and boost behind it know each client by its address, and boost the relay's own cause", {
	skip,
}, async (t) => {
	const system = await startProcessSystem();
	t.after(() => system.stop());
	// As containers end, with their connections: HAProxy keeps idle ones of a server whose address
	// has changed, and uses them again as long as they are open. Probes twice a second would have
	// kept one open to what is no relay.
	await endContainers();
	names.knows("relay", ["127.0.0.4"], 1);
	names.knows("boost", ["127.0.0.4"], 1);
	const common = { ...system.env, HOST: "127.0.0.4", TRUST_PROXY: "1", BOOST_SECRET: "shared by both" };
	// On a busy machine a relay may take longer to answer than operators allow it.
	const patient = { RELAY_URL: `http://127.0.0.1:${relayPort}`, PROBE_TIMEOUT_MS: "10000" };
	await until("the others are gone", async () => (await asked(relayPort)).status === 503);
	// Readiness is asked at HAProxy, which has the same port at another address.
	const node = await startNodeProxy(system.chain.url);
	t.after(() => node.stop());
	const relay = await system.start({ ...common, ETH_RPC_URL: node.url, PORT: String(relayPort) });
	const boost = await startBoostProcess({
		env: { ...common, ...patient, PORT: String(boostPort), FALLBACK_URL: "none" },
	}).catch(async (thrown: Error) => {
		const own = await request(`http://127.0.0.4:${relayPort}/readyz`).then(
			({ body }) => body.text(),
			(fault: Error) => fault.message,
		);
		const of = `the relay itself says ${own}; its log: ${relay.stdout.slice(-2_000)}; HAProxy: ${logged}`;
		throw new Error(`${thrown.message}; ${of}`);
	});
	t.after(() => boost.kill());
	for (const port of [relayPort, boostPort]) {
		for (const address of ["127.0.0.1", "127.0.0.9"]) assert.equal(await addressSeen(port, address), address);
		const spoof = { "x-forwarded-for": "192.0.2.1", "x-boost-auth": "guessed" };
		assert.equal(await addressSeen(port, "127.0.0.9", spoof), "127.0.0.9");
	}
	// HAProxy has no relay that is ready then, and passes on what the relay says.
	node.setFault({ kind: "destroy" });
	await until("boost has the relay's own cause", async () => {
		const answer = await fetch(`http://127.0.0.4:${boostPort}/status`);
		const { relay } = (await answer.json()) as PublicStatus;
		return relay.reason === "node" && relay.hint?.startsWith("its /readyz reports node: ");
	});
	const { status } = await asked(boostPort, "/relay/admin/state");
	assert.equal(status, 401, "the relay's own answer to a request without its token");
});

/**
 * The address by which the relay knows a client at `address`, by the first answer that reports it:
 * while nobody is ready for a moment, HAProxy or boost answers with an error.
 */
async function addressSeen(port: number, address: string, headers: Record<string, string> = {}) {
	const dispatcher = new Agent({ localAddress: address });
	let last = "";
	const ask = async (): Promise<string | undefined> => {
		const answer = await request(`http://127.0.0.1:${port}/`, {
			...{ dispatcher, method: "POST" },
			headers: { ...headers, "content-type": "application/json" },
			body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "service_client", params: [] }),
		});
		const text = await answer.body.text();
		last = `${answer.statusCode} ${text.slice(0, 200)}`;
		if (!String(answer.headers["content-type"]).includes("json")) return undefined;
		return (JSON.parse(text) as { result?: { address?: string } }).result?.address;
	};
	try {
		return await until(`who ${address} is at port ${port}`, ask);
	} catch (thrown) {
		throw new Error(`${(thrown as Error).message}; the last answer: ${last}`);
	} finally {
		await dispatcher.close();
	}
}
