// Runs boost, then a relay, in a network namespace whose name server never responds; with `own`,
// only boost, with Node's own look-up. Prints one line of JSON with the results. Run by
// muteNames.test.ts, never in the namespace of the machine.

import { createSocket } from "node:dgram";
import { lookup as ownLookup } from "node:dns";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readBoostConfig } from "../../boost-proxy/config.ts";
import { createProxy } from "../../boost-proxy/proxy.ts";
import { silentLogger } from "../../shared/log.ts";
import { boostEnv } from "../faults/boostHere.ts";
import { BoostClient } from "./boostFixture.ts";
import { startProcessSystem } from "./systems.ts";
import { signedTransaction, testAccount } from "./txFactory.ts";

const isOwn = process.argv[2] === "own";
const lookup = isOwn ? { lookup: ownLookup as unknown as LookupFunction } : {};

const mute = createSocket("udp4");
await new Promise<void>((resolve) => mute.bind(53, "127.0.0.1", resolve));
const boost = await tryBoost();
process.stdout.write(`${JSON.stringify({ boost, ...(isOwn ? {} : { relay: await tryRelay() }) })}\n`);
process.exit(0);

/**
 * 64 submissions to a relay whose name is in the hosts file, beside a fallback whose name nobody
 * answers for.
 */
async function tryBoost() {
	const hashes = new Map(Array.from({ length: 64 }, (_, nonce) => hashOf(nonce)));
	const relay = createServer(async (request, response) => {
		let body = "";
		for await (const chunk of request) body += String(chunk);
		response.setHeader("content-type", "application/json");
		if (request.method === "GET") response.end('{"ready":true}');
		else response.end(answerTo(body, hashes));
	});
	await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
	const { port } = relay.address() as AddressInfo;
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const env = boostEnv({
		...{ relayUrl: `http://relay.test:${port}`, fallbackUrl: "https://mute.test", folder },
	});
	const proxy = createProxy(readBoostConfig(env), { log: silentLogger, drainMs: 0, ...lookup });
	await proxy.start();
	const boost = new BoostClient(proxy.port);
	// Until the fallback's name has been asked for again and again.
	await boost.reaches("the fallback is down", ({ fallback }) => fallback?.state === "open");
	const answers = await Promise.all(
		[...hashes].map(async ([raw, hash]) => {
			const { json } = await boost.call("eth_sendRawTransaction", [raw]);
			return (json as { result?: string }).result === hash;
		}),
	);
	const { relay: state } = await boost.status();
	boost.close();
	await proxy.stop();
	return { answered: answers.filter(Boolean).length, relay: state.state, reason: state.reason };
}

/**
 * Transactions through a relay, a process of its own, four of whose builders have names that nobody
 * answers for.
 */
async function tryRelay() {
	const names = ["mute1", "mute2", "mute3", "mute4"];
	const system = await startProcessSystem({
		builders: [{ name: "dev" }, ...names.map((name) => ({ name, url: `https://${name}.test` }))],
	});
	const account = testAccount(900);
	await system.chain.fund([account]);
	const relay = await system.start();
	let mined = 0;
	for (let nonce = 0; nonce < 4; nonce++) {
		const { raw } = signedTransaction({ by: account, nonce: BigInt(nonce), gasLimit: 21_000n });
		const hex = `0x${Buffer.from(raw).toString("hex")}`;
		const hash = await relay.client.send(hex);
		await system.delivered([hex]);
		await system.nextBlock(relay);
		if ((await relay.client.status(hash)).status === "INCLUDED") mined += 1;
	}
	await system.stop();
	return { mined };
}

function hashOf(nonce: number): [string, string] {
	const { raw, hash } = signedTransaction({ nonce: BigInt(nonce) });
	return [`0x${Buffer.from(raw).toString("hex")}`, hash];
}

function answerTo(body: string, hashes: ReadonlyMap<string, string>): string {
	const one = (call: { id: unknown; method: string; params?: readonly unknown[] }) => {
		const results: Record<string, unknown> = {
			eth_chainId: "0x7a69",
			eth_blockNumber: "0x10",
			eth_sendRawTransaction: hashes.get(String(call.params?.[0])),
		};
		const result = results[call.method];
		const outcome = result === undefined ? { error: { code: -32000, message: "no" } } : { result };
		return { jsonrpc: "2.0", id: call.id, ...outcome };
	};
	const parsed = JSON.parse(body) as Parameters<typeof one>[0] | Parameters<typeof one>[0][];
	return JSON.stringify(Array.isArray(parsed) ? parsed.map(one) : one(parsed));
}
