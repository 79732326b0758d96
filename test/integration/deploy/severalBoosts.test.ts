// Two boost instances on one database, both real processes: both serve, and the survivor takes over
// what the other one had. Each test goes on with the survivor. The relay is in this process, and
// down while its wire refuses.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { after, before, test } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { statusOf } from "../../faults/boostHere.ts";
import { type CellParts, startCellParts } from "../../faults/cellParts.ts";
import { startWorld, type World } from "../../faults/world.ts";
import { newDatabase } from "../../support/engine.ts";
import { sized } from "../../support/length.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type BoostProcess, startBoostProcess } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { signedTransaction, type TestAccount } from "../../support/txFactory.ts";
import { PATIENCE_MS, until } from "../../support/until.ts";

/** Those that send to one boost instance alone. */
const SENDERS = sized(10, 100);
const NONCES = 5;
/**
 * Until the accounts of a killed one are taken over, in ms. Nothing else runs beside a long test.
 */
const TAKEN_OVER_MS = sized(PATIENCE_MS, 5_000);
/** Those that alternate between two boost instances. */
const WALLETS = sized(6, 12);

let world: World;
let builder: PlainBuilder;
let parts: CellParts;
/** The boost instance that outlives all others. */
let other: BoostProcess;
before(async () => {
	world = await startWorld({ blockMs: 1_000, accounts: SENDERS + WALLETS + 4, builder: "plain" });
	// Nothing that the relay sends is ever mined: what is mined has come by the fallback.
	builder = await startPlainBuilder();
	parts = await startCellParts(world, "several", {
		...{ processes: ["boost"], builderUrl: builder.url },
		boost: {
			...{ ETH_RPC_URL: world.chain.url, DATABASE_URL: await newDatabase() },
			...{ PROBE_INTERVAL_MS: "1000", PROBE_TIMEOUT_MS: "60000", REQUEST_BUDGET_MS: "20000" },
		},
	});
	other = await startAnother();
});
after(async () => {
	await other?.kill();
	await parts?.stop();
	await builder?.stop();
	await world?.stop();
});

test(`a boost instance is killed for good with ${SENDERS * NONCES} open transactions, while accounts alternate between it and another one, which has all mined without the relay`, async () => {
	// Even if the relay is slow, nothing is sent elsewhere.
	await parts.fallbackWire.set({ kind: "refuse" });
	const first = new RelayClient(parts.boost.url);
	const sent: string[] = [];
	const accounts = world.accounts(SENDERS);
	for (let nonce = 0; nonce < NONCES; nonce += 1)
		sent.push(...(await Promise.all(accounts.map((by) => send(first, by, nonce)))));
	assert.equal((await statusOf(parts.boost.url)).journal.depth, sent.length);
	assert.equal((await statusOf(other.url)).journal.depth, 0);

	const wallets = world.accounts(WALLETS);
	let acknowledged = 0;
	let killed: Promise<void> | undefined;
	let killedAt = 0;
	const wallet = async (by: TestAccount): Promise<void> => {
		for (let nonce = 0; nonce < 10; nonce += 1) {
			// A wallet whose connection breaks asks again.
			const own = await send(nonce % 2 === 0 ? first : other.client, by, nonce).catch(() => null);
			sent.push(
				own ?? (await until("it is taken", () => send(other.client, by, nonce).catch(() => undefined))),
			);
			acknowledged += 1;
			if (acknowledged < WALLETS * 5 || killed !== undefined) continue;
			killed = parts.processes.boost?.kill();
			killedAt = systemClock.monotonic();
		}
	};
	await Promise.all(wallets.map(wallet));
	await killed;
	await parts.wire.set({ kind: "refuse" });
	const open = sent.filter((hash) => !world.mined.has(hash));
	assert.equal(open.length, sent.length, "all were open when the relay went away");
	await parts.fallbackWire.set(null);

	await until("the other one has taken them over", async () => {
		return (await statusOf(other.url)).journal.depth >= SENDERS * NONCES;
	});
	const tookMs = systemClock.monotonic() - killedAt;
	assert.ok(tookMs < TAKEN_OVER_MS, `${tookMs} ms`);
	await until("all are mined", () => sent.every((hash) => world.mined.has(hash)));
	await until("its journal is empty", async () => (await statusOf(other.url)).journal.depth === 0);
	assert.deepEqual(
		sent.filter((hash) => world.publicHashes.has(hash)),
		[],
	);
});

/**
 * Whether a process waits for a connection with `port` of this machine; see proc(5), /proc/net/tcp,
 * where SYN_SENT is 02.
 */
function isConnecting({ pid }: BoostProcess, port: number): boolean {
	const sockets = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
		try {
			return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
		} catch {
			return [];
		}
	});
	const rows = readFileSync(`/proc/${pid}/net/tcp`, "utf8").split("\n");
	return rows.some((row) => {
		const [, , remote = "", state, , , , , , inode = ""] = row.trim().split(/\s+/);
		return state === "02" && Number.parseInt(remote.slice(9), 16) === port && sockets.includes(inode);
	});
}

/**
 * Whether a request of the hanging instance waits for its connection meanwhile, which takes the
 * system half a minute more; httpClient.ends.test.ts tests such a request.
 */
const WAITS = sized(false, true);
const IN_PROC = { skip: !WAITS || existsSync("/proc") ? false : "connections are seen in /proc alone" };

test(
	"a boost instance hangs: another one cancels what it had, and it sends nothing of that when it wakes up",
	IN_PROC,
	async (t) => {
		await parts.wire.set(null);
		const hanging = await startAnother();
		t.after(() => hanging.kill());
		for (const { url } of [hanging, other])
			await until("the relay is healthy", async () => (await statusOf(url)).relay.state === "closed");
		const accounts = world.accounts(4);
		const sent = await Promise.all(accounts.map((by) => send(hanging.client, by, 0)));
		const begun = systemClock.monotonic();
		const { port } = parts.fallbackWire;
		const timesSent = (by: TestAccount) =>
			parts.fallbackWire
				.requests()
				.filter(({ calls }) => calls.some(({ params }) => params?.[0] === rawOf(by, 0))).length;
		if (WAITS) await parts.fallbackWire.set({ kind: "blackHole" });
		// It tries again and again, also as soon as it wakes up.
		else await parts.fallbackWire.set({ kind: "internal" }, "submissions");
		await parts.wire.set({ kind: "refuse" });
		if (WAITS)
			await until("it connects with the fallback", () => isConnecting(hanging, port), PATIENCE_MS, 1);
		else await until("it has tried each", () => accounts.every((by) => timesSent(by) > 1));
		hanging.signal("SIGSTOP");
		// After this answer all that the hanging instance had written is read.
		await statusOf(other.url);
		// One that waits for its connection: others may be on those that were open, which are read and
		// not answered.
		const waiting = accounts.findIndex((by) => !WAITS || timesSent(by) === 0);
		const cancelled = sent[waiting] ?? assert.fail("all are on connections that were open");
		const due = sent.filter((hash) => hash !== cancelled);

		const said = async () => {
			const answer = await other.client.ask("eth_cancelTransaction", [cancelled], "/fast");
			return answer.error?.message ?? "cancelled";
		};
		// The answer does not depend on the account's home.
		assert.match(await said(), /cancels it there as soon as|^cancelled$/);
		await parts.fallbackWire.set(null);
		await until("the others are mined", () => due.every((hash) => world.mined.has(hash)));
		// The system goes on to connect, after 15 s at the latest.
		if (WAITS) await until("it is connected", () => !isConnecting(hanging, port));

		const before = timesSent(accounts[waiting] as TestAccount);
		hanging.signal("SIGCONT");
		await until("it has let go of them", async () => (await statusOf(hanging.url)).journal.depth === 0);
		assert.equal(world.mined.has(cancelled), false);
		const times = timesSent(accounts[waiting] as TestAccount);
		assert.equal(times, before, `the fallback had it within ${systemClock.monotonic() - begun} ms`);
		assert.equal((await other.client.status(cancelled)).stage, "CANCELLED");
	},
);

function startAnother(): Promise<BoostProcess> {
	return startBoostProcess({ env: { ...parts.boostEnv, PORT: "0", LOG_LEVEL: "info" } });
}

async function send(to: RelayClient, by: TestAccount, nonce: number): Promise<string> {
	const { hash } = signedTransaction({ gasLimit: 21_000, value: 1, by, nonce });
	assert.equal(await to.send(rawOf(by, nonce), "/fast"), hash);
	return hash;
}

function rawOf(by: TestAccount, nonce: number): string {
	const { raw } = signedTransaction({ gasLimit: 21_000, value: 1, by, nonce });
	return `0x${Buffer.from(raw).toString("hex")}`;
}
