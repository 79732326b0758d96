// The database by TLS: a password never goes over a connection whose peer says that it has no TLS,
// unless the settings ask for clear text. Then the log says so before the first byte.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { after, before, it } from "node:test";
import { readBoostConfig } from "../../boost-proxy/config.ts";
import { createProxy } from "../../boost-proxy/proxy.ts";
import { readRelayConfig } from "../../relay/config.ts";
import { createRelay } from "../../relay/relay.ts";
import { type Logger, silentLogger } from "../../shared/log.ts";
import { type LaunchedRelay, launchRelay } from "../support/processes.ts";
import { until } from "../support/until.ts";

/** https://www.postgresql.org/docs/current/protocol-message-formats.html, SSLRequest */
const SSL_REQUEST = "0000000804d2162f";
const PASSWORD = "not-for-everybody";
/** The name of a host that is elsewhere, as far as the relay can tell. */
const ELSEWHERE = "database.example";
const RESOLVES = `data:text/javascript,${encodeURIComponent(
	`import dns from "node:dns";
	const lookup = dns.lookup;
	dns.lookup = (name, ...rest) => lookup(name === "${ELSEWHERE}" ? "127.0.0.1" : name, ...rest);`,
)}`;

let server: Server;
let relay: LaunchedRelay | undefined;
/** The bytes that each connection sent, and whether it has ended. */
const connections: { bytes: Buffer; ended: boolean }[] = [];
before(async () => {
	server = createServer((socket: Socket) => {
		const connection = { bytes: Buffer.alloc(0), ended: false };
		connections.push(connection);
		socket.on("data", (chunk) => {
			connection.bytes = Buffer.concat([connection.bytes, chunk]);
			// To a question for TLS: no. To all else: the password, in clear text.
			if (connection.bytes.toString("hex") === SSL_REQUEST) socket.write("N");
			else socket.write(Buffer.from("520000000800000003", "hex"));
		});
		socket.on("error", () => {});
		socket.on("close", () => {
			connection.ended = true;
		});
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
});
after(async () => {
	await relay?.kill();
	server.close();
});

it("the password is not sent to a remote database without TLS", async () => {
	const { port } = server.address() as AddressInfo;
	relay = launchRelay({
		env: {
			...{
				PORT: "0",
				HOST: "127.0.0.1",
				ETH_RPC_URL: "http://127.0.0.1:9",
				NODE_OPTIONS: `--import=${RESOLVES}`,
			},
			DATABASE_URL: `postgres://leeward:${PASSWORD}@${ELSEWHERE}:${port}/leeward`,
			BUILDERS: JSON.stringify([{ name: "none", url: "http://127.0.0.1:9" }]),
		},
	});
	await until("a connection that has ended", () =>
		connections.some(({ ended, bytes }) => ended && bytes.length > 0),
	);
	for (const { bytes } of connections) assert.equal(bytes.toString("hex"), SSL_REQUEST);
});

const NOWHERE = "http://127.0.0.1:9";
const PLACE = { PORT: "0", HOST: "127.0.0.1", ETH_RPC_URL: NOWHERE };
const UPSTREAMS = { RELAY_URL: NOWHERE, FALLBACK_URL: "none", BOOST_SECRET: "a secret" };
/** Processes that start with neither a node nor a database that responds. */
const PROCESSES = {
	relay: (DATABASE_URL: string, log: Logger) =>
		createRelay(
			readRelayConfig({
				...PLACE,
				DATABASE_URL,
				BUILDERS: JSON.stringify([{ name: "none", url: NOWHERE }]),
			}),
			{ log },
		),
	boost: (DATABASE_URL: string, log: Logger) =>
		createProxy(readBoostConfig({ ...PLACE, ...UPSTREAMS, DATABASE_URL }), {
			log,
		}),
};

for (const [name, create] of Object.entries(PROCESSES)) {
	it(`${name} warns of clear text to another host before it connects`, async () => {
		const { port } = server.address() as AddressInfo;
		const warned: string[] = [];
		const log: Logger = {
			...silentLogger,
			warn: (message) => void (/clear text/.test(message) && warned.push(message)),
			child: () => log,
		};
		const connected = once(server, "connection").then(() => [...warned]);
		const started = create(`postgres://leeward:${PASSWORD}@0.0.0.0:${port}/leeward?sslmode=disable`, log);
		const starting = started.start().catch(() => {});
		const expected = ["connecting to the database in clear text (sslmode=disable): keep its network private"];
		assert.deepEqual(await connected, expected);
		await started.stop();
		await starting;
		assert.deepEqual(warned, expected, "once");
	});
}
