// What a store is of: one chain for good, and one key that is made once.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { computeAddress } from "ethers";
import { bindToChain, keptSigningKey } from "../../../../relay/store/identity.ts";
import { addressOfKey } from "../../../../shared/ethereum/signatures.ts";
import { openLmdb } from "../../../../shared/kv/lmdb.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";

const folder = mkdtempSync(join(tmpdir(), "leeward-identity-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const GENESIS = `0x${"aa".repeat(32)}`;

test("a store belongs to the chain of its first start", async () => {
	const place = join(folder, "chain");
	let kv = await openLmdb(place);
	await bindToChain(kv, 1n, GENESIS);
	await bindToChain(kv, 1n, GENESIS);
	await kv.close();
	kv = await openLmdb(place);
	await bindToChain(kv, 1n, GENESIS);
	const other = `0x${"bb".repeat(32)}`;
	for (const [chainId, genesis] of [
		[11n, GENESIS],
		[1n, other],
		[2n, other],
	] as const) {
		await assert.rejects(bindToChain(kv, chainId, genesis), (thrown: Error & { code?: string }) => {
			assert.equal(thrown.code, "OTHER_CHAIN");
			assert.equal(
				thrown.message,
				`the store belongs to another chain (chain id and genesis 1 ${GENESIS}; the node has ${chainId} ${genesis}): set DATA_DIR or DATABASE_URL to another one`,
			);
			return true;
		});
	}
	// A refusal changes nothing.
	await bindToChain(kv, 1n, GENESIS);
	await kv.close();
});

test("the key is made once, is a key, stays with its store, and a warning says that there is one", async () => {
	const place = join(folder, "key");
	const warnings: string[] = [];
	const log: Logger = {
		...silentLogger,
		warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
	};
	let kv = await openLmdb(place);
	const key = await keptSigningKey(kv, log);
	assert.match(key, /^0x[0-9a-f]{64}$/);
	assert.equal(addressOfKey(key), computeAddress(key).toLowerCase());
	assert.equal(await keptSigningKey(kv, log), key);
	await kv.close();
	kv = await openLmdb(place);
	assert.equal(await keptSigningKey(kv, log), key);
	await kv.close();
	const another = await openLmdb(join(folder, "other-key"));
	assert.notEqual(await keptSigningKey(another, log), key);
	await another.close();
	assert.match(warnings[0] ?? "", /SIGNING_KEY/);
	assert.ok(!warnings.join().includes(key.slice(2)));
});
