// Tests a relay among builders that can't be used: a name that no name server answers for, and a
// web page in the place of JSON-RPC. The others get their deliveries, reads keep their time, and
// the operator is notified once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Wallet } from "ethers";
import { systemClock } from "../../../shared/clock.ts";
import { type Logger, silentLogger } from "../../../shared/log.ts";
import { createLookup } from "../../../shared/outgoing/lookup.ts";
import { startNameServer } from "../../support/nameServer.ts";
import { startPlainBuilder } from "../../support/plainBuilder.ts";
import { startSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const TRANSACTIONS = 8;

test("builders that can't be used hold up nobody, and are reported once", async () => {
	const names = await startNameServer();
	const page = await startPlainBuilder();
	page.answerWith(() => ({ status: 403, contentType: "text/html", body: "<html>secret</html>" }));
	const warnings: Record<string, unknown>[] = [];
	const log: Logger = {
		...silentLogger,
		warn: (message, fields) => void warnings.push({ message, ...fields }),
		child: () => log,
	};
	const lookup = createLookup({ servers: [names.address] }, { clock: systemClock });
	const system = await startSystem({
		builders: [
			{ name: "dev" },
			{ name: "mute", url: "https://mute.test/key" },
			{ name: "page", url: `${page.url}/key` },
		],
		...{ log, lookup },
	});
	try {
		const wallet = new Wallet(system.chain.accounts[0]?.privateKey ?? "");
		for (let nonce = 0; nonce < TRANSACTIONS; nonce++) {
			const raw = await wallet.signTransaction({
				...{ chainId: 31337, nonce, type: 2, gasLimit: 21_000, to: wallet.address, value: 1 },
				...{ maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n },
			});
			const hash = await system.client.send(raw);
			await until("the name was asked for", () => nonce > 0 || names.asked.includes("mute.test"));
			assert.equal(
				await system.client.call("eth_blockNumber", []),
				`0x${(await height(system)).toString(16)}`,
			);
			// Before anybody gives up on the name, which takes 5 s.
			await system.builder.waitForRequest(({ params }) => JSON.stringify(params).includes(raw), 4_000);
			await system.nextBlock();
			assert.equal((await system.client.status(hash)).status, "INCLUDED");
		}
		const told = () => warnings.filter(({ upstream }) => upstream === "page");
		await until("the page is reported", () => told().length > 0);
		assert.equal(page.bodies.length > 1, true);
		assert.deepEqual(
			told().map(({ hint }) => hint),
			[
				"HTTP 403: it refuses this machine: check the key in its url in BUILDERS and the provider's list of allowed addresses",
			],
		);
		assert.doesNotMatch(JSON.stringify(warnings), /secret|\/key/);
	} finally {
		await system.stop();
		await page.stop();
		await names.stop();
	}
});

async function height({ chain }: Awaited<ReturnType<typeof startSystem>>): Promise<number> {
	const answer = await fetch(chain.url, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}',
	});
	return Number(((await answer.json()) as { result: string }).result);
}
