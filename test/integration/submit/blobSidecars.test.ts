// Blobs with content on a chain with Osaka: what wallets make today (ethers, viem: one proof a blob) is taken, and builders get it
// with cell proofs; what proves nothing is refused before it is acknowledged, and kept nowhere.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { concat, Transaction, Wallet } from "ethers";
import { createPublicClient, http, toBlobs } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { blobMaker, type RealBlobs } from "../../support/realBlobs.ts";
import { type Actor, GWEI, RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { rawTransaction, type TestSidecar } from "../../support/txFactory.ts";

const TARGET = "0x00000000000000000000000000000000000be11e";
const FEES = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI, maxFeePerBlobGas: 3n * GWEI };

let system: TestSystem;
let fixture: RelayFixture;
let maker: ReturnType<typeof blobMaker>;
let real: RealBlobs;

before(async () => {
	maker = blobMaker();
	real = maker.make(2, 2);
	system = await startSystem({ builders: [{ name: "bundle" }] });
	fixture = new RelayFixture(system);
});
after(() => system.stop());

/** `raw`, of which ethers says that it has one proof a blob, as ethers writes it with cell proofs. */
function withCellProofs(raw: string): string {
	const tx = Transaction.from(raw);
	assert.equal(tx.blobWrapperVersion, null);
	tx.blobs = (tx.blobs ?? []).map(({ data, commitment }) => ({
		...{ data, commitment },
		proof: concat(maker.kzg.computeCellsAndKzgProofs(Buffer.from(data.slice(2), "hex")).proofs),
	}));
	tx.blobWrapperVersion = 1;
	return tx.serialized;
}

/** Waits until the builder has it with cell proofs, and mines it. */
async function isMined(raw: string, hash: string, { address: from }: Actor): Promise<void> {
	const held = { raw: withCellProofs(raw), hash, from };
	await fixture.waitUntilSent(held);
	assert.deepEqual(fixture.blocks(fixture.builder("bundle"), { raw, hash, from }), []);
	await system.nextBlock();
	await fixture.reaches(held, "INCLUDED");
	assert.equal((await fixture.receipt(held))?.ok, true);
}

describe("what a wallet makes is taken, with cell proofs in place of one proof a blob", () => {
	it("ethers, of raw blobs", async () => {
		const actor = await fixture.actor();
		const raw = await new Wallet(actor.account.keyHex).signTransaction({
			...{ type: 3, chainId: 31_337, nonce: 0, gasLimit: 100_000, to: TARGET, ...FEES },
			...{ kzg: maker.kzg, blobs: real.v0.blobs.map((blob) => Buffer.from(blob)) },
		});
		const hash = String(Transaction.from(raw).hash);
		assert.equal(await system.client.send(raw, "/fast"), hash);
		await isMined(raw, hash, actor);
	});
	it("viem, of data", async () => {
		const actor = await fixture.actor();
		const raw = await privateKeyToAccount(actor.account.keyHex as `0x${string}`).signTransaction({
			...{ type: "eip4844", chainId: 31_337, nonce: 0, gas: 100_000n, to: TARGET, ...FEES },
			blobs: toBlobs({ data: "0x68656c6c6f", to: "bytes" }),
			kzg: {
				blobToKzgCommitment: (blob) => maker.kzg.blobToKzgCommitment(blob),
				computeBlobKzgProof: (blob, commitment) => maker.kzg.computeBlobKzgProof(blob, commitment),
			},
		});
		const viem = createPublicClient({ transport: http(`${system.client.url}/fast`) });
		const hash = await viem.sendRawTransaction({ serializedTransaction: raw });
		await isMined(raw, hash, actor);
	});
});

/** Each with what the error's message says. */
const REFUSED: Readonly<Record<string, () => readonly [0 | 1, TestSidecar, RegExp]>> = {
	"a wrong proof": () => [
		0,
		{ ...real.v0, proofs: [...real.v0.proofs].reverse() },
		/^KZG verification error: can't verify opening proof$/,
	],
	"the commitment of another blob, whose hash is signed": () => [
		0,
		{ ...real.v0, commitments: [...real.v0.commitments].reverse() },
		/^KZG verification error: can't verify opening proof$/,
	],
	"cell proofs of which two are swapped": () => [
		1,
		{ ...real.v1, proofs: [...real.v1.proofs.slice(128), ...real.v1.proofs.slice(0, 128)] },
		/^KZG verification error: can't verify opening proof$/,
	],
	"a list that is a proof short": () => [
		1,
		{ ...real.v1, proofs: real.v1.proofs.slice(1) },
		/^invalid blob sidecar: 255 proofs, expected 256$/,
	],
};

describe("what proves nothing is refused, and nothing is kept of it", () => {
	for (const [title, make] of Object.entries(REFUSED)) {
		it(title, async () => {
			const actor = await fixture.actor();
			const [sidecarVersion, sidecar, message] = make();
			const options = { type: 3, sidecarVersion } as const;
			const good = actor.sign({ ...options, sidecar: sidecarVersion === 0 ? real.v0 : real.v1 });
			const raw = `0x${rawTransaction({ ...options, sidecar, by: actor.account }).toString("hex")}`;
			const { error } = await system.client.ask("eth_sendRawTransaction", [raw]);
			assert.ok(error);
			assert.equal(error.code, -32000);
			assert.match(error.message, message);
			const { reason } = error.data as { reason?: string };
			assert.equal(reason, message.source.includes("KZG") ? "BLOBS" : "UNDECODABLE");
			assert.equal(await fixture.pendingNonce(actor), 0);
			// The same hash with its right sidecar is a new one then.
			await fixture.submit("/fast", good);
			await fixture.event(good, "delivered");
		});
	}
});

describe("in a bundle", () => {
	/** A bundle of `raw` for the next block. */
	const bundle = async (raw: string) => [
		{
			version: "v0.1",
			inclusion: { block: `0x${((await fixture.head()) + 1).toString(16)}` },
			body: [{ tx: raw }],
		},
	];
	it("blobs with one proof each go out with cell proofs", async () => {
		const actor = await fixture.actor();
		const v0 = actor.sign({ type: 3, sidecarVersion: 0, sidecar: real.v0 });
		const v1 = actor.sign({ type: 3, sidecarVersion: 1, sidecar: real.v1 });
		await system.client.call("mev_sendBundle", await bundle(v0.raw));
		await fixture.waitUntilSent(v1);
	});
	it("what proves nothing is refused", async () => {
		const actor = await fixture.actor();
		const wrong = actor.sign({
			...{ type: 3, sidecarVersion: 0 },
			sidecar: { ...real.v0, proofs: real.v0.proofs.toReversed() },
		});
		const { error } = await system.client.ask("mev_sendBundle", await bundle(wrong.raw));
		assert.match(error?.message ?? "", /^KZG verification error: can't verify opening proof$/);
	});
});
