// The chain followed while its node is killed and started again, as a real process.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type AnvilProcess, startAnvil } from "../../devnet/nodeProcess.ts";
import { startHeadFixture } from "../../support/headFixture.ts";
import { until } from "../../support/until.ts";

const ANNOUNCED = "info node announces heads";
const OUT = "warn could not read the node's head";
const BACK = "info node's head read again";

describe("a node that is killed and started again", () => {
	for (const transport of ["polling", "subscription"] as const) {
		test(`over ${transport}: blocks mined meanwhile are caught up one by one`, async () => {
			const folder = mkdtempSync(join(tmpdir(), "leeward-heads-"));
			const args = ["--no-mining", "--state", join(folder, "state.json")];
			let anvil: AnvilProcess = await startAnvil(0, args);
			const { url, port } = anvil;
			const ask = (method: string, params: readonly unknown[]) => post(url, method, params);
			const fixture = await startHeadFixture(url, ask, {
				pollMs: 25,
				...(transport === "subscription" ? { wsUrl: url.replace("http", "ws"), safetyPollMs: 60_000 } : {}),
			});
			try {
				await ask("anvil_mine", ["0x3"]);
				await fixture.waitUntilInSync("three blocks");
				if (transport === "subscription") await until("live", () => fixture.logged.includes(ANNOUNCED));
				// anvil keeps its state when it is asked to end.
				process.kill(anvil.pid, "SIGTERM");
				await until("the outage in the log", () => fixture.logged.includes(OUT));
				await ended(anvil);
				assert.equal(fixture.tracker.current()?.number, 3);
				anvil = await startAnvil(port, args);
				await ask("anvil_mine", ["0x4"]);
				await fixture.waitUntilInSync("four more");
				assert.equal(fixture.tracker.current()?.number, 7);
				assert.ok(
					fixture.mirror.updates.slice(1).every(({ gap, reverted }) => !gap && reverted.length === 0),
				);
				if (transport === "subscription") {
					await until("live again", () => fixture.logged.filter((line) => line === ANNOUNCED).length >= 2);
					await ask("anvil_mine", ["0x1"]);
					await fixture.waitUntilInSync("an announced block");
				}
				assert.equal(fixture.logged.filter((line) => line === OUT).length, 1);
				assert.equal(fixture.logged.filter((line) => line === BACK).length, 1);
			} finally {
				await fixture.stop();
				await anvil.stop();
				rmSync(folder, { recursive: true });
			}
		});
	}

	test("another chain on the same port is a gap, never a path of blocks", async () => {
		const first = await startAnvil(0, ["--no-mining", "--timestamp", "1700000000"]);
		const ask = (method: string, params: readonly unknown[]) => post(first.url, method, params);
		const fixture = await startHeadFixture(first.url, ask, {});
		let second: AnvilProcess | null = null;
		try {
			await ask("anvil_mine", ["0x3"]);
			await fixture.waitUntilInSync("three blocks");
			await first.stop();
			second = await startAnvil(first.port, ["--no-mining", "--timestamp", "1700000001"]);
			await fixture.waitUntilInSync("the other chain");
			assert.equal(fixture.mirror.updates.at(-1)?.gap, true);
			assert.ok(fixture.logged.includes("warn blocks missed"));
		} finally {
			await fixture.stop();
			await first.stop();
			await second?.stop();
		}
	});
});

async function post(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
	const headers = { "content-type": "application/json" };
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	const answer = await fetch(url, { method: "POST", headers, body });
	return ((await answer.json()) as { result: unknown }).result;
}

/**
 * anvil does not keep the process alive, and neither does a promise: asking again and again does.
 */
async function ended(anvil: AnvilProcess): Promise<void> {
	let gone = false;
	const noted = anvil.gone.then(() => {
		gone = true;
	});
	await until("the end of the process", () => gone);
	await noted;
}
