// Tests the requests for `/` by which balancers and hosts learn whether a process is up, byte by
// byte: 200 from the relay and from boost, whatever they accept, with every state of the relay and
// the node behind it. Only `/readyz` reports readiness.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { RawConnection, requestText } from "../../support/clients.ts";
import { readyStatus } from "../../support/processes.ts";
import { until } from "../../support/until.ts";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture({ system: { proxied: true } });
});
after(() => fixture?.stop());

const head = (...lines: readonly string[]) => `${lines.join("\r\n")}\r\n\r\n`;
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/** As their documents and sources have them; `page`: it gets the HTML. */
const CHECKERS: readonly { name: string; bytes: string; page?: boolean; closes?: boolean }[] = [
	{ name: "curl", bytes: head("GET / HTTP/1.1", "Host: x", "User-Agent: curl/8.5.0", "Accept: */*") },
	{ name: "nothing but a Host", bytes: head("GET / HTTP/1.1", "Host: x") },
	{ name: "an Accept of nothing", bytes: head("GET / HTTP/1.1", "Host: x", "Accept:") },
	{ name: "JSON", bytes: head("GET / HTTP/1.1", "Host: x", "Accept: application/json") },
	{ name: "an image", bytes: head("GET / HTTP/1.1", "Host: x", "Accept: image/png;q=0.1") },
	{ name: "no page", bytes: head("GET / HTTP/1.1", "Host: x", "Accept: text/html;q=0, */*") },
	{ name: "a browser", bytes: head("GET / HTTP/1.1", "Host: x", `Accept: ${BROWSER}`), page: true },
	{ name: "a query", bytes: head("GET /?check=1&a=//b HTTP/1.1", "Host: x", "Accept: */*") },
	{ name: "two slashes", bytes: head("GET // HTTP/1.1", "Host: x") },
	{ name: "a whole URL", bytes: head("GET http://x:8080/?a HTTP/1.1", "Host: x:8080") },
	{
		// Node keeps no connection whose client waits for a go-ahead.
		...{ name: "one that would wait", closes: true },
		bytes: head("GET / HTTP/1.1", "Host: x", "Expect: 100-continue"),
	},
	{ name: "a body", bytes: `${head("GET / HTTP/1.1", "Host: x", "Content-Length: 2")}{}` },
	{
		name: "chunks",
		bytes: `${head("GET / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked")}2\r\n{}\r\n0\r\n\r\n`,
	},
	{
		name: "AWS",
		bytes: head(
			"GET / HTTP/1.1",
			"Host: 10.0.0.7:8080",
			"Connection: close",
			"User-Agent: ELB-HealthChecker/2.0",
		),
		closes: true,
	},
	{
		name: "Google",
		bytes: head("GET / HTTP/1.1", "Host: 10.0.0.7", "User-Agent: GoogleHC/1.0", "Connection: Keep-alive"),
	},
	{
		name: "Kubernetes",
		bytes: head(
			"GET / HTTP/1.1",
			"Host: x",
			"User-Agent: kube-probe/1.31",
			"Accept: */*",
			"Connection: close",
		),
		closes: true,
	},
	{ name: "HTTP/1.0 without a Host", bytes: head("GET / HTTP/1.0"), closes: true },
	{ name: "HTTP/1.0 that keeps its connection", bytes: head("GET / HTTP/1.0", "Connection: keep-alive") },
];

/** Each checker by GET and HEAD, then another request behind it on the same connection. */
async function check(port: number, service: "relay" | "boost"): Promise<void> {
	for (const { name, bytes, page = false, closes = false } of CHECKERS) {
		let length: string | undefined;
		for (const verb of ["GET", "HEAD"]) {
			const connection = await RawConnection.open(port);
			connection.write(bytes.replace("GET", verb));
			const { status, headers, body } = await connection.answer(verb === "HEAD");
			assert.equal(status, 200, `${verb} ${name}`);
			assert.equal(headers["content-type"], page ? "text/html; charset=utf-8" : "application/json", name);
			assert.equal(headers.vary?.toLowerCase(), "accept", name);
			assert.equal(headers["x-boost-upstream"], service === "boost" ? "boost" : undefined, name);
			length ??= headers["content-length"];
			assert.equal(headers["content-length"], length, `${verb} ${name}`);
			if (verb === "GET" && !page) {
				assert.equal(JSON.parse(body).service, service, name);
				assert.equal(body.includes("\n"), false, "one line");
			}
			if (closes) assert.equal(await connection.closed(), "", name);
			else {
				connection.write(requestText("GET", "/livez"));
				assert.equal((await connection.answer()).body, '{"live":true}', `behind ${verb} ${name}`);
			}
			connection.destroy();
		}
	}
}

test("the relay's, while its node is up and while it is down", async () => {
	const { relay, client, node } = fixture.system;
	await check(relay.port, "relay");
	node?.setFault({ kind: "destroy" });
	await until("it is not ready", async () => (await readyStatus(client.url)) === 503);
	await check(relay.port, "relay");
	node?.setFault(null);
	await until("it is ready again", async () => (await readyStatus(client.url)) === 200);
});

test("boost's, while its relay is up and while it is down", async () => {
	await check(fixture.boost.port, "boost");
	await fixture.fails();
	await fixture.wires.fallback.set({ kind: "refuse" });
	await fixture.boost.reaches("both are down", ({ fallback }) => fallback?.state !== "closed");
	await check(fixture.boost.port, "boost");
	assert.equal((await fixture.boost.get("/readyz")).status, 503);
	await fixture.recovers();
});
