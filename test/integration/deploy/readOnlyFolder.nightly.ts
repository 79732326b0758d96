// The data folder of a running relay, and of a running boost, can't be written any more: its file
// system, a real one, has found an error and made itself read-only, or its files are made immutable
// and then changed back. Submissions are refused as on a full disk, or held by the relay behind
// boost; /readyz says why; nothing that was acknowledged is missing, then and after a restart.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { request } from "undici";
import { BOOST_SECRET, boostEnv, statusOf } from "../../faults/boostHere.ts";
import { type Signed, signed } from "../../support/crashFixture.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { type RelayProcess, startBoostProcess, startRelayProcess } from "../../support/processes.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** A place for a data folder that a test can make read-only. */
interface Place {
	/** DATA_DIR. */
	readonly folder: string;
	/** Nothing below the folder can be written from now on. */
	fail(): void;
	/** It can be written again. If `isLate` no process may use it. */
	mend(): void;
	readonly isLate: boolean;
	remove(): void;
}

const run = (command: string, ...args: readonly string[]) =>
	execFileSync(command, args, { stdio: ["ignore", "pipe", "pipe"] });

/**
 * A file system of its own. A process that has a file open keeps it from being remounted, but not
 * from failing.
 */
function fileSystem(): Place {
	const root = mkdtempSync(join(tmpdir(), "leeward-volume-"));
	const [image, folder] = [join(root, "image"), join(root, "mounted")];
	mkdirSync(folder);
	writeFileSync(image, "");
	const mount = () => run("mount", "-o", "loop,errors=remount-ro", image, folder);
	const remove = () => rmSync(root, { recursive: true, force: true });
	try {
		run("truncate", "-s", "128M", image);
		run("mkfs.ext4", "-q", "-F", image);
		mount();
	} catch (thrown) {
		remove();
		throw thrown;
	}
	return {
		folder,
		fail() {
			const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
			const [device = ""] = mounts.find((line) => line.includes(` ${folder} `))?.split(" ") ?? [];
			writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, "a test");
		},
		mend() {
			run("umount", folder);
			mount();
		},
		isLate: true,
		remove() {
			run("umount", "-l", folder);
			remove();
		},
	};
}

/** A folder whose data no process may change. */
function immutable(): Place {
	const folder = mkdtempSync(join(tmpdir(), "leeward-immutable-"));
	// But for LMDB's lock file, which it writes to through memory: that would be a SIGBUS.
	const change = (how: string) => {
		for (const name of ["relay", "boost"])
			for (const path of [join(folder, name, "data.mdb"), join(folder, name)])
				if (existsSync(path)) run("chattr", how, path);
	};
	const remove = () => {
		change("-i");
		rmSync(folder, { recursive: true, force: true });
	};
	mkdirSync(join(folder, "relay"), { mode: 0o700 });
	change("+i");
	change("-i");
	return { folder, fail: () => change("+i"), mend: () => change("-i"), isLate: false, remove };
}

const PLACES = [
	["a file system that makes itself read-only", fileSystem, "EROFS"],
	["files that become immutable", immutable, "EPERM|EACCES"],
] as const;

/** Why there is no such place here; false: there is. */
function missing(make: () => Place): string | false {
	if (process.getuid?.() !== 0) return "only root may mount a file system or make files immutable";
	try {
		make().remove();
		return false;
	} catch (thrown) {
		return `this machine refuses it: ${(thrown as Error).message.trim().split("\n").at(-1)}`;
	}
}

const SENDERS = 400;
const WORKERS = 4;
/** Acknowledged before the failure, and refused after it, at least. */
const [BEFORE, REFUSED] = [40, 8];
const REFUSAL = {
	code: -32603,
	message: "internal error: the store is unavailable, try again",
	data: { reason: "store unavailable" },
};

let system: ProcessSystem;
let senders = 62_000;
before(async () => {
	system = await startProcessSystem({ env: { BOOST_SECRET, ...IN_FOLDER } });
});
after(() => system?.stop());

/** Submissions of accounts that nothing else uses. */
async function crowd(): Promise<Signed[]> {
	const accounts = Array.from({ length: SENDERS }, (_, i) => testAccount(senders + i));
	senders += SENDERS;
	await system.chain.fund(accounts);
	return accounts.map((by) => signed({ by }));
}

/**
 * Sends one of `txs` after another over some connections, until `isOver`; returns what was
 * acknowledged.
 */
async function submit(
	{ client }: RelayProcess,
	path: string,
	txs: Signed[],
	isOver: () => boolean,
	onAnswer: (answer: WireAnswer, acknowledged: readonly string[]) => void,
): Promise<readonly string[]> {
	const acknowledged: string[] = [];
	const work = async (): Promise<void> => {
		for (let tx = txs.pop(); tx !== undefined && !isOver(); tx = txs.pop()) {
			const answer = await client.ask("eth_sendRawTransaction", [tx.raw], path);
			if (answer.error === undefined) {
				assert.equal(answer.result, tx.hash);
				acknowledged.push(tx.hash);
			}
			onAnswer(answer, acknowledged);
		}
	};
	await Promise.all(Array.from({ length: WORKERS }, work));
	return acknowledged;
}

async function readiness(url: string): Promise<{ readonly status: number; readonly text: string }> {
	const { statusCode, body } = await request(`${url}/readyz`);
	return { status: statusCode, text: await body.text() };
}

/** Each is held: the process has it, and it has not ended. */
async function assertHeld({ client }: RelayProcess, hashes: readonly string[], when: string): Promise<void> {
	for (const hash of hashes) {
		const { stage, status } = await client.status(hash);
		assert.ok(stage !== undefined && status === "UNKNOWN", `${hash} is ${stage} ${when}`);
	}
}

for (const [what, make, codes] of PLACES) {
	const skip = missing(make);
	test(`${what}: the relay refuses submissions, says why, and loses nothing that it acknowledged`, {
		skip,
	}, async (t) => {
		const place = make();
		t.after(() => place.remove());
		const env = { ...system.env, DATA_DIR: place.folder, ...IN_FOLDER };
		const relay = await startRelayProcess({ env });
		t.after(() => relay.kill());
		const txs = await crowd();
		let hasFailed = false;
		const refusals: unknown[] = [];
		const acknowledged = await submit(
			relay,
			"/nochecks",
			txs,
			() => refusals.length >= REFUSED,
			({ error }, all) => {
				if (error !== undefined) {
					assert.ok(hasFailed, `refused before: ${JSON.stringify(error)}`);
					refusals.push(error);
				}
				if (!hasFailed && all.length >= BEFORE) {
					hasFailed = true;
					place.fail();
				}
			},
		);
		for (const error of refusals) assert.deepEqual(error, REFUSAL);
		assert.ok(refusals.length >= REFUSED, "it was refused");
		await until("it is not ready, and says why", async () => {
			const { status, text } = await readiness(relay.url);
			return status === 503 && new RegExp(`DATA_DIR can't be written \\((${codes})\\)`).test(text);
		});
		await assertHeld(relay, acknowledged, "while nothing can be written");

		let all = acknowledged;
		if (!place.isLate) {
			place.mend();
			await until("it is ready again", async () => (await readiness(relay.url)).status === 200);
			await assertHeld(relay, acknowledged, "once it is ready again");
			const later = await submit(
				relay,
				"/nochecks",
				txs.splice(0, REFUSED),
				() => false,
				({ error }) => assert.equal(error, undefined),
			);
			all = acknowledged.concat(later);
			await relay.kill("SIGTERM");
		} else {
			await relay.kill("SIGTERM");
			place.mend();
		}
		const next = await startRelayProcess({ env });
		t.after(() => next.kill());
		await assertHeld(next, all, "after a restart");
	});

	test(`${what}: boost goes on with what the relay holds, says why, and loses nothing that it acknowledged`, {
		skip,
	}, async (t) => {
		const place = make();
		t.after(() => place.remove());
		const relay = await startRelayProcess({
			env: { ...system.env, DATA_DIR: join(system.folder, what.replaceAll(" ", "-")), ...IN_FOLDER },
		});
		t.after(() => relay.kill());
		const env = {
			...boostEnv({ relayUrl: relay.url, fallbackUrl: "none", folder: place.folder }),
			...{ BOOST_SECRET, ...IN_FOLDER },
		};
		const boost = await startBoostProcess({ env });
		t.after(() => boost.kill());
		let hasFailed = false;
		let since = 0;
		const acknowledged = await submit(
			boost,
			"/fast",
			await crowd(),
			() => since >= 2 * BEFORE,
			({ error }, all) => {
				assert.equal(error, undefined);
				if (hasFailed) since += 1;
				else if (all.length >= BEFORE) {
					hasFailed = true;
					place.fail();
				}
			},
		);
		const isDurable = async () => (await statusOf(boost.url)).journal.durable;
		await until("its journal is in memory alone, and it says why", async () => {
			const { status, text } = await readiness(boost.url);
			const says = new RegExp(`DATA_DIR can't be written \\((${codes})\\)`).test(text);
			return status === 200 && says && !(await isDurable());
		});
		await assertHeld(boost, acknowledged, "while nothing can be written");
		await assertHeld(relay, acknowledged, "at the relay");
		if (!place.isLate) {
			place.mend();
			await until("its journal is on disk again", isDurable);
		}
		await boost.kill("SIGTERM");
		if (place.isLate) place.mend();
		const next = await startBoostProcess({ env });
		t.after(() => next.kill());
		await assertHeld(next, acknowledged, "after a restart");
		if (!place.isLate) assert.equal((await statusOf(next.url)).journal.depth, acknowledged.length);
	});
}
