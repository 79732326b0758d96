// Tests boost under the relay's attacks: large requests don't hold it up or open its breaker, its journal is shared
// by client.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { BoostStatus } from "../../boost-proxy/ingress/operators.ts";
import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { Attacker } from "../support/attacks/attacker.ts";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import type { Tally } from "../support/attacks/flood.ts";
import { HonestUser } from "../support/attacks/honestUser.ts";
import { assertServed, Measuring } from "../support/attacks/measuring.ts";
import { attackerAddress, HONEST, resultOf, send } from "../support/attacks/wire.ts";
import { type BoostProcess, startBoostProcess } from "../support/processes.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";

const BOOST_SECRET = "shared by relay and boost";
const MIB = 1024 * 1024;
/** Of the journal's 256 MiB, what one client may have, and what each entry counts beside its bytes. */
const [CLIENT_BYTES, ENTRY_BYTES] = [16 * MIB, 512];

async function statusOf(boost: BoostProcess): Promise<BoostStatus> {
	const { body } = await send({ url: `${boost.url}/status`, from: HONEST, deadlineMs: 5_000 });
	return JSON.parse(body) as BoostStatus;
}

describe("before a relay", () => {
	let fixture: AttackFixture;
	let boost: BoostProcess;
	let attacker: Attacker;
	let folder: string;
	before(async () => {
		fixture = await startAttackFixture({ env: { BOOST_SECRET } });
		folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
		boost = await startBoostProcess({
			env: {
				...{ PORT: "0", HOST: "127.0.0.1", RELAY_URL: fixture.relay.url, DATA_DIR: folder },
				...{ ETH_RPC_URL: fixture.chain.url, FALLBACK_URL: "none", BOOST_SECRET },
			},
		});
		attacker = new Attacker(boost.url);
	});
	after(async () => {
		await attacker?.stop();
		await boost?.kill();
		await fixture?.stop();
		rmSync(folder, { recursive: true, force: true });
	});

	it("eth_callMany with 690,000 empty calls delays nobody, and opens no breaker", async () => {
		const { chain, builder } = fixture;
		const user = await HonestUser.arrive({ relay: boost, chain, builder, patienceMs: 6_000 });
		const measuring = new Measuring({ user, pid: boost.pid, say: (line) => fixture.say(line) });
		const earlier = await measuring.during("before");
		const attack = attacker.attack("emptyCalls", { count: 6, size: 690_000, connections: 2 });
		const meanwhile = await measuring.during("eth_callMany of 690,000 empty calls", attack);
		fixture.say("they came to", (await attack).outcomes);
		const { relay } = await statusOf(boost);
		assertServed(earlier, meanwhile, await measuring.during("after"));
		assert.equal(relay.state, "closed");
	});
});

describe("the journal", () => {
	let upstream: Server;
	let boost: BoostProcess;
	let attacker: Attacker;
	let folder: string;
	before(async () => {
		folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
		upstream = await startTaker();
		const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
		boost = await startBoostProcess({
			env: {
				...{ PORT: "0", HOST: "127.0.0.1", DATA_DIR: folder, RATE_LIMIT_RPS: "0", BOOST_SECRET },
				...{
					RELAY_URL: "http://127.0.0.1:9",
					FALLBACK_URL: url,
					FALLBACK_DIALECT: "mevblocker",
					ETH_RPC_URL: url,
				},
			},
		});
		attacker = new Attacker(boost.url);
	});
	after(async () => {
		await attacker?.stop();
		await boost?.kill();
		upstream?.closeAllConnections();
		upstream?.close();
		rmSync(folder, { recursive: true, force: true });
	});

	/** Transactions of 800 KB each from one address. */
	const flood = (client: number, count: number): Promise<Tally> =>
		attacker.attack("blobs", {
			...{ count, connections: 4, accounts: 1_000_000 + client * 1_000 },
			from: attackerAddress(client),
		});
	const large = rawTransaction({ type: 3, blobs: 6 }).length;
	const share = Math.floor(CLIENT_BYTES / (large + ENTRY_BYTES));
	const small = (account: number): Promise<unknown> => {
		const raw = `0x${rawTransaction({ by: testAccount(account) }).toString("hex")}`;
		const call = { url: `${boost.url}/fast`, from: HONEST, deadlineMs: 5_000 };
		return resultOf("eth_sendRawTransaction", [raw], call);
	};

	it("gives one client at most a sixteenth, so that others still have room", async () => {
		const { outcomes } = await flood(0, share + 4);
		assert.deepEqual(outcomes, {
			accepted: share,
			"-32005 too many pending transactions from this client": 4,
		});
		await small(900_000);
	});
});

/** An upstream that takes every transaction and knows nothing else. */
async function startTaker(): Promise<Server> {
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			if (!request.complete) return;
			if (request.method !== "POST") return response.writeHead(404).end();
			const parsed = JSON.parse(Buffer.concat(chunks).toString()) as TakerCall | TakerCall[];
			const answers = [parsed]
				.flat()
				.map(({ id, method, params }) => ({ jsonrpc: "2.0", id, result: resultFor(method, params) }));
			response.writeHead(200, { "content-type": "application/json" });
			response.end(JSON.stringify(Array.isArray(parsed) ? answers : answers[0]));
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return server;
}

interface TakerCall {
	readonly id: unknown;
	readonly method: string;
	readonly params: readonly unknown[];
}

function resultFor(method: string, [first]: readonly unknown[] = []): unknown {
	if (method === "eth_chainId") return "0x7a69";
	if (method === "eth_blockNumber") return "0x1";
	if (method !== "eth_sendRawTransaction") return null;
	const decoded = decodeTransaction(Buffer.from(String(first).slice(2), "hex"));
	return decoded.ok ? decoded.tx.hash : null;
}
