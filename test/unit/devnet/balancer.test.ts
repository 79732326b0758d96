// The balancer of `npm start` in front of real servers: the server that gets a connection, and the
// connections of a server that ends.

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { after, test } from "node:test";
import { startBalancer } from "../../devnet/balancer.ts";
import { freePort } from "../../devnet/freePort.ts";
import { until } from "../../support/until.ts";

interface Target {
	readonly name: string;
	ready: boolean;
	/** Requests for /wait, which has no end. */
	waiting: number;
	readonly port: number;
	stop(): Promise<void>;
}

const ends: (() => Promise<void>)[] = [];
after(async () => {
	for (const end of ends) await end();
});

/** A server that returns its name, and its readiness at /readyz. */
async function target(name: string, ready: boolean): Promise<Target> {
	const server: Server = createServer((request, response) => {
		if (request.url === "/readyz") response.statusCode = one.ready ? 200 : 503;
		if (request.url === "/wait") {
			response.write(name);
			one.waiting += 1;
			response.once("close", () => {
				one.waiting -= 1;
			});
		} else response.end(name.repeat(request.url === "/long" ? 1_000_000 : 1));
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const one: Target = {
		...{ name, ready, waiting: 0 },
		port: (server.address() as AddressInfo).port,
		async stop() {
			const closed = new Promise((resolve) => server.close(resolve));
			server.closeAllConnections();
			await closed;
		},
	};
	ends.push(one.stop);
	return one;
}

async function balanced(...targets: readonly Target[]): Promise<string> {
	const balancer = await startBalancer(
		0,
		targets.map(({ port }) => port),
	);
	ends.push(balancer.stop);
	return balancer.url;
}

/** The name of the server that answers a new connection; "" if it is closed. */
async function asked(url: string, path = "/"): Promise<string> {
	try {
		return await (await fetch(url + path, { headers: { connection: "close" } })).text();
	} catch {
		return "";
	}
}

/** The names of the servers that answer so many connections, sorted. */
async function answers(url: string, times: number): Promise<string> {
	let all = "";
	for (let i = 0; i < times; i++) all += await asked(url);
	return [...all].sort().join("");
}

test("connections go in turns to those that are ready, as it is now", async () => {
	const [a, b, c] = [await target("a", true), await target("b", false), await target("c", true)];
	const url = await balanced(a, b, c);
	await until("a and c alone, each as often", async () => (await answers(url, 6)) === "aaaccc");
	b.ready = true;
	await until("all three in turns", async () => (await answers(url, 6)) === "aabbcc");
	a.ready = false;
	c.ready = false;
	await until("b alone", async () => (await answers(url, 6)) === "bbbbbb");
});

test("where none is ready the servers say so themselves", async () => {
	const url = await balanced(await target("a", false));
	const response = await fetch(`${url}/readyz`);
	assert.deepEqual([response.status, await response.text()], [503, "a"]);
});

test("a connection is taken by another one where a ready server has just gone, and closed where none is left", async () => {
	const [a, b] = [await target("a", true), await target("b", true)];
	const url = await balanced(a, b);
	await until("both in turns", async () => (await answers(url, 4)) === "aabb");
	await a.stop();
	assert.equal(await answers(url, 4), "bbbb");
	await b.stop();
	assert.equal(await asked(url), "");
});

test("a long answer comes whole, and a client that has gone is dropped at its server", async () => {
	const one = await target("a", true);
	const url = await balanced(one);
	assert.equal((await asked(url, "/long")).length, 1_000_000);
	const { port } = new URL(url);
	const socket = connect(Number(port), "127.0.0.1");
	socket.write("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n");
	await new Promise((resolve) => socket.once("data", resolve));
	assert.equal(one.waiting, 1);
	socket.destroy();
	await until("its server knows", () => one.waiting === 0);
});

test("a port that is taken is an error, and after its end nothing listens", async () => {
	const one = await target("a", true);
	await assert.rejects(startBalancer(one.port, [one.port]), { code: "EADDRINUSE" });
	const port = await freePort();
	const balancer = await startBalancer(port, [one.port]);
	assert.equal(await asked(balancer.url), "a");
	await balancer.stop();
	assert.equal(await asked(balancer.url), "");
});
