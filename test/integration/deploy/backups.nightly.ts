// The commands of docs/deploy.md that back up and restore the stores, run on those of running
// processes; and what it says of a restored backup: what is there, what is pending again, and what
// is not. PostgreSQL's where its own programs are installed.

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { freePort } from "../../devnet/freePort.ts";
import { ROOT, snippet } from "../../support/documents.ts";
import { serverBin, startPostgres } from "../../support/postgresServer.ts";
import { type LaunchedRelay, launchBoost, launchRelay, readyStatus } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const BOOST_SECRET = "what boost and its relay share";
const TTL_BLOCKS = 5;

const BACK_UP = snippet("docs/deploy.md", "cd /opt/leeward\nTO=");
const RESTORE = snippet("docs/deploy.md", "FROM=");
const DUMP = snippet("docs/deploy.md", "pg_dump");
const LOAD = snippet("docs/deploy.md", "sudo systemctl stop leeward-boost leeward-relay    # on every");

const root = mkdtempSync(join(tmpdir(), "leeward-backup-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** A machine with both services, whose folders are below its own. */
class Machine {
	readonly folder: string;
	readonly system: ProcessSystem;
	readonly relay: RelayClient;
	readonly boost: RelayClient;
	readonly #databaseUrl: string | undefined;
	readonly #running = new Map<string, LaunchedRelay>();
	#sender = 0;

	private constructor(
		parts: Pick<Machine, "folder" | "system" | "relay" | "boost">,
		databaseUrl: string | undefined,
	) {
		this.folder = parts.folder;
		this.system = parts.system;
		this.relay = parts.relay;
		this.boost = parts.boost;
		this.#databaseUrl = databaseUrl;
	}

	static async start(databaseUrl?: string): Promise<Machine> {
		const folder = mkdtempSync(join(root, "machine-"));
		for (const path of ["bin", "var/lib/leeward-relay", "var/lib/leeward-boost", "var/backups"])
			mkdirSync(join(folder, path), { recursive: true });
		const [relay, boost] = await Promise.all(
			[0, 0].map(async () => new RelayClient(`http://127.0.0.1:${await freePort()}`)),
		);
		if (relay === undefined || boost === undefined) throw new Error("no ports");
		const machine = new Machine({ folder, system: await startProcessSystem(), relay, boost }, databaseUrl);
		await machine.systemctl("start", "relay");
		await machine.systemctl("start", "boost");
		return machine;
	}

	/** Acts as systemd does. */
	async systemctl(verb: string, name: string): Promise<void> {
		if (verb === "stop") {
			await this.#running.get(name)?.kill("SIGTERM");
			return;
		}
		const client = name === "relay" ? this.relay : this.boost;
		const env = {
			...this.system.env,
			DATA_DIR: join(this.folder, `var/lib/leeward-${name}`),
			...(this.#databaseUrl === undefined ? {} : { DATABASE_URL: this.#databaseUrl }),
			PORT: new URL(client.url).port,
			RELAY_URL: this.relay.url,
			FALLBACK_URL: "none",
			BOOST_SECRET,
			TX_TTL_BLOCKS: String(TTL_BLOCKS),
			DRAIN_SECONDS: "0",
		};
		this.#running.set(name, (name === "relay" ? launchRelay : launchBoost)({ env }));
		await until(`${name} is ready`, async () => (await readyStatus(client.url)) === 200);
	}

	/**
	 * Submits a transaction of an account of its own through boost, and waits until the builder has
	 * it.
	 */
	async submit(): Promise<{ readonly raw: string; readonly hash: string }> {
		const account = this.system.chain.accounts[this.#sender];
		this.#sender += 1;
		const raw = `0x${rawTransaction({ by: accountOf(account?.privateKey ?? "") }).toString("hex")}`;
		const hash = await this.boost.send(raw);
		await this.system.delivered([raw]);
		return { raw, hash };
	}

	async cancel(hash: string): Promise<void> {
		assert.equal(await this.boost.call("eth_cancelTransaction", [hash]), true);
		await this.reaches(hash, "CANCELLED");
	}

	async reaches(hash: string, stage: string, client = this.relay): Promise<void> {
		await until(`${hash} is ${stage}`, async () => (await client.stage(hash)) === stage);
	}

	/** Builds blocks. */
	async blocks(count: number): Promise<void> {
		for (let i = 0; i < count; i += 1) await this.system.builder.buildBlock();
	}

	/**
	 * Runs a block of the guide. Commands that stop or start a service wait for {@link systemctl};
	 * `between` runs when all have stopped.
	 */
	async run(block: string, between = async (): Promise<void> => {}): Promise<void> {
		const asked = join(this.folder, "asked");
		for (const [name, text] of [
			["sudo", 'exec "$@"'],
			[
				"systemctl",
				'echo "$*" > "$ASKED.part"; mv "$ASKED.part" "$ASKED"; while [ -e "$ASKED" ]; do sleep 0.05; done',
			],
		] as const) {
			writeFileSync(join(this.folder, "bin", name), `#!/bin/sh\n${text}\n`);
			chmodSync(join(this.folder, "bin", name), 0o755);
		}
		const text = block
			.replaceAll("/opt/leeward", ROOT)
			.replaceAll(/(?<=[ =])\/var\//g, `${this.folder}/var/`);
		assert.doesNotMatch(text, /…/);
		let isOver = false;
		const env = {
			PATH: `${join(this.folder, "bin")}:${BIN}:${process.env.PATH}`,
			HOME: this.folder,
			ASKED: asked,
			DATABASE_URL: this.#databaseUrl ?? "",
		};
		const running = promisify(execFile)("/bin/sh", ["-euc", text], { cwd: this.folder, env }).finally(() => {
			isOver = true;
		});
		while (!isOver) {
			await until("a service is asked for, or the end", () => isOver || existsSync(asked));
			if (!existsSync(asked)) continue;
			const [verb = "", ...units] = readFileSync(asked, "utf8").trim().split(" ");
			for (const unit of units) await this.systemctl(verb, unit.replace("leeward-", ""));
			if (verb === "stop") await between();
			rmSync(asked);
		}
		await running;
	}

	/** The restoring block with the newest backup of a store filled in. */
	async restoring(name: string): Promise<string> {
		const kept = (await readdir(join(this.folder, "var/backups/leeward"))).filter((one) =>
			one.startsWith(name),
		);
		return RESTORE.replaceAll("relay", name).replace(`${name}-…`, kept.sort().at(-1) ?? "");
	}

	async stop(): Promise<void> {
		for (const one of this.#running.values()) await one.kill();
		await this.system.stop();
	}
}

/** With pg_dump of the same version. */
const FOUND = serverBin("initdb", "postgres", "pg_dump", "pg_restore");
const BIN = FOUND ?? "/nowhere";

/** Whether the builder received `raw` since request number `since`. */
function sentSince(system: ProcessSystem, since: number, raw: string): boolean {
	return system.builder
		.requests()
		.some(({ seq, params }) => seq > since && JSON.stringify(params).includes(raw));
}

test("LMDB: the relay's store is backed up as it runs, wiped and restored, and what the guide says of that is so", async (t) => {
	const machine = await Machine.start();
	t.after(() => machine.stop());
	const { system } = machine;
	const [kept, cancelled, doubtful] = [
		await machine.submit(),
		await machine.submit(),
		await machine.submit(),
	];
	await machine.cancel(cancelled.hash);
	// Their outcomes are written with a block, in which the builder must not include them.
	let since = await system.lastRequest();
	system.builder.reset();
	await machine.blocks(1);
	await system.delivered([kept.raw, doubtful.raw], since);
	const fresh = await machine.submit();
	await machine.run(BACK_UP);
	await machine.cancel(doubtful.hash);
	const later = await machine.submit();

	await machine.run(await machine.restoring("relay"), async () => {
		since = await system.lastRequest();
	});
	// The transaction that was acknowledged by then is there and goes out. Boost forwards the later
	// one again.
	await machine.reaches(kept.hash, "BROADCAST");
	await machine.reaches(later.hash, "BROADCAST");
	await system.delivered([kept.raw, later.raw], since);
	assert.equal(await machine.relay.send(cancelled.raw), cancelled.hash);
	await machine.reaches(cancelled.hash, "CANCELLED");
	assert.equal(sentSince(system, since, cancelled.raw), false);
	// The reason to wait: its cancel is not in the backup.
	await system.delivered([doubtful.raw], since);

	// Restored once more, when the life of what was pending is over.
	await machine.run(await machine.restoring("relay"), async () => {
		// The builder has it from before.
		system.builder.reset();
		await machine.blocks(TTL_BLOCKS + 1);
		since = await system.lastRequest();
	});
	await machine.reaches(doubtful.hash, "EXPIRED");
	// But for what came in the last slot before the backup: when its life began was not written yet.
	await system.delivered([fresh.raw], since);
	assert.equal(sentSince(system, since, doubtful.raw), false);
});

test("LMDB: boost's journal is backed up and restored by the same commands, and learns from the relay what has ended", async (t) => {
	const machine = await Machine.start();
	t.after(() => machine.stop());
	const [kept, doubtful] = [await machine.submit(), await machine.submit()];
	await machine.run(BACK_UP.replaceAll("relay", "boost"));
	await machine.cancel(doubtful.hash);
	const later = await machine.submit();
	await machine.run(await machine.restoring("boost"));
	for (const { hash } of [kept, later]) await machine.reaches(hash, "BROADCAST", machine.boost);
	await machine.reaches(doubtful.hash, "CANCELLED", machine.boost);
	// It has the row of what it held then: while the relay is down it answers by itself.
	await machine.systemctl("stop", "relay");
	await machine.reaches(kept.hash, "HELD", machine.boost);
});

const skip = FOUND === null ? "no pg_dump with a PostgreSQL server of its version here" : false;

test("PostgreSQL: all stores are dumped as they run, wiped and restored", { skip }, async (t) => {
	const postgres = await startPostgres({ bin: BIN });
	t.after(() => postgres.stop());
	const url = await postgres.newDatabase();
	const machine = await Machine.start(url);
	t.after(() => machine.stop());
	const [kept, cancelled] = [await machine.submit(), await machine.submit()];
	await machine.cancel(cancelled.hash);
	await machine.run(DUMP);
	const later = await machine.submit();
	let since = 0;
	await machine.run(LOAD, async () => {
		// The database is lost.
		const { status, stderr } = spawnSync(
			join(BIN, "psql"),
			[url, "-c", "DROP SCHEMA public CASCADE; CREATE SCHEMA public"],
			{
				encoding: "utf8",
			},
		);
		assert.equal(status, 0, stderr);
		since = await machine.system.lastRequest();
	});
	await machine.reaches(kept.hash, "BROADCAST");
	await machine.system.delivered([kept.raw], since);
	await machine.reaches(kept.hash, "BROADCAST", machine.boost);
	assert.equal(await machine.relay.send(cancelled.raw), cancelled.hash);
	await machine.reaches(cancelled.hash, "CANCELLED");
	// Neither store has it.
	assert.equal(await machine.boost.stage(later.hash), undefined);
});
