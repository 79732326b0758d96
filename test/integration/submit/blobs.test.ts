// The whole path for types 0 to 4, creations and blobs with both kinds of sidecar: the bytes that
// builders get, what is mined, and what clients are shown. Blobs as ethers and viem make them today
// (one proof a blob; with content in the nightly run) go out with cell proofs; what proves nothing
// is refused. Each fault of a sidecar has its row in test/contract/blobsGeth.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { concat, Transaction, Wallet } from "ethers";
import { createPublicClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { deploying, EMITS } from "../../support/contracts.ts";
import { sized } from "../../support/length.ts";
import { kzgOf, realBlobs, zeroBlob } from "../../support/realBlobs.ts";
import { type Actor, GWEI, RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem, verifiesBlobs } from "../../support/systems.ts";
import { rawTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const GAS_PER_BLOB = 131_072;
const TARGET = "0x00000000000000000000000000000000000be11e";
const ACCESS_LIST = [{ address: TARGET, storageKeys: [`0x${"07".repeat(32)}`] }];

let system: TestSystem;
let fixture: RelayFixture;
const real = realBlobs();
const zeros = zeroBlob();
/** With content, each node of the test needs seconds to load what verifies them. */
const walletBlobs = sized(zeros, real);
/** The KZG library that a wallet computes with. */
const kzg = kzgOf(walletBlobs);
/** The proof is of another blob. */
const wrong = { ...zeros.v0, proofs: real.v0.proofs.slice(0, 1) };

before(async () => {
	system = await startSystem({
		builders: [{ name: "bundle" }, { name: "share", dialect: "mev-share" }],
		// The tests compare all bytes of a sidecar, and go-ethereum checks its proofs in
		// blobsGeth.test.ts.
		builder: { checksBlobs: sized(false, true) },
	});
	fixture = new RelayFixture(system);
	const first = (await fixture.actor()).sign({ type: 3, sidecarVersion: 0, nonce: 1 });
	await verifiesBlobs(system.client, first.raw);
});
after(() => system.stop());

/** The fees that wallets sign. */
const BLOB_FEES = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI, maxFeePerBlobGas: 3n * GWEI };
/** The fees that clients are shown. */
const FEES = { maxFeePerGas: "0x4a817c800", maxPriorityFeePerGas: "0x3b9aca00" };
const PRICE = { maxFeePerGas: "0x2540be400", maxPriorityFeePerGas: "0x2540be400" };
const BLOB_FEE = { maxFeePerBlobGas: "0xb2d05e00" };

/**
 * Each with what `eth_getTransactionByHash` must show of its type, beside what is the same for all.
 */
const ROWS: readonly {
	readonly name: string;
	readonly options: Omit<TxOptions, "by">;
	/** Options of the bytes that builders get instead of the very same ones. */
	readonly sent?: Omit<TxOptions, "by">;
	readonly shown: Readonly<Record<string, unknown>>;
	/** Fields that it shows only while it is pending. */
	readonly pending?: Readonly<Record<string, unknown>>;
}[] = [
	{
		name: "type 0",
		options: { type: 0, gasPrice: 10n * GWEI },
		shown: { type: "0x0", to: TARGET, accessList: [], ...PRICE },
	},
	{
		name: "type 0 that creates",
		options: { type: 0, gasPrice: 10n * GWEI, to: null, data: deploying(EMITS) },
		shown: { type: "0x0", to: null, input: deploying(EMITS), accessList: [], ...PRICE },
	},
	{
		name: "type 1 with an access list",
		options: { type: 1, gasPrice: 10n * GWEI, accessList: ACCESS_LIST },
		shown: { type: "0x1", to: TARGET, accessList: ACCESS_LIST, ...PRICE },
	},
	{
		name: "type 2 with data and value",
		options: { data: "0xc0ffee", value: 77n },
		shown: { type: "0x2", to: TARGET, input: "0xc0ffee", value: "0x4d", accessList: [], ...FEES },
	},
	{
		name: "type 2 that creates",
		options: { to: null, data: deploying(EMITS), accessList: ACCESS_LIST },
		shown: { type: "0x2", to: null, input: deploying(EMITS), accessList: ACCESS_LIST, ...FEES },
	},
	{
		name: "type 3 with a proof a blob, in whose place are cell proofs",
		options: { type: 3, sidecarVersion: 0, blobs: 2 },
		sent: { type: 3, sidecarVersion: 1, blobs: 2 },
		shown: { type: "0x3", to: TARGET, accessList: [], ...FEES, ...BLOB_FEE },
	},
	{
		name: "type 3 with cell proofs",
		options: { type: 3, sidecarVersion: 1, data: "0x01" },
		shown: { type: "0x3", to: TARGET, input: "0x01", accessList: [], ...FEES, ...BLOB_FEE },
	},
	{
		name: "type 4",
		options: { type: 4, authorizations: [{ by: testAccount(77), address: TARGET }] },
		shown: { type: "0x4", to: TARGET, accessList: [], ...FEES },
		pending: {
			authorizationList: [
				{ chainId: "0x7a69", address: TARGET, nonce: "0x0", yParity: "0x0", r: "0x0", s: "0x0" },
			],
		},
	},
];

/** Fields that `eth_getTransactionByHash` has for every type, by the interface. */
const FIELDS =
	"accessList blockHash blockNumber chainId from gas gasPrice hash input maxFeePerGas maxPriorityFeePerGas nonce r s to transactionIndex type v value yParity";
const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };
/** Blobs are nobody's business before they are in a block. */
const SECRETS = ["blobs", "commitments", "proofs", "cellProofs", "sidecar"];

function assertShown(
	found: Record<string, unknown> | null,
	expected: Readonly<Record<string, unknown>>,
): void {
	assert.ok(found);
	for (const field of FIELDS.split(" ")) assert.ok(Object.hasOwn(found, field), `${field} is missing`);
	const same = Object.fromEntries(Object.keys(expected).map((key) => [key, found[key]]));
	assert.deepEqual(same, expected);
}

describe("each type, from submission to block", () => {
	for (const { name, options, sent = options, shown, pending: hidden = {} } of ROWS) {
		it(`${name}: builders get the very bytes, clients are shown it without its signature, it is mined`, async () => {
			const actor = await fixture.actor();
			const tx = actor.sign({ gasLimit: 200_000, ...options });
			const common = {
				hash: tx.hash,
				from: actor.address,
				nonce: "0x0",
				chainId: "0x7a69",
				gas: "0x30d40",
				value: "0x0",
				input: "0x",
				...shown,
				...HIDDEN,
			};
			await fixture.submit("/noreverts", tx);
			await fixture.waitUntilSent(actor.sign({ gasLimit: 200_000, ...sent }));
			const pending = await fixture.byHash(tx);
			const nowhere = { blockHash: null, blockNumber: null, transactionIndex: null };
			assertShown(pending, { ...common, ...hidden, ...nowhere });
			for (const field of SECRETS) assert.equal(Object.hasOwn(pending ?? {}, field), false, field);
			const block = await system.nextBlock();
			await fixture.reaches(tx, "INCLUDED");
			assert.equal((await fixture.receipt(tx))?.ok, true);
			assertShown(await fixture.byHash(tx), { ...common, blockNumber: `0x${block.toString(16)}` });
			const { transaction } = await fixture.status(tx);
			assert.deepEqual(transaction, {
				from: actor.address,
				to: shown.to ?? "",
				gas: "200000",
				nonce: "0",
				value: BigInt(String(common.value)).toString(),
			});
		});
	}
});

describe("what only one type has", () => {
	it("type 4 delegates the authority's code, which may then send by itself", async () => {
		const authority = await fixture.actor();
		const delegate = await fixture.placeCode(EMITS);
		const tx = (await fixture.actor()).sign({
			type: 4,
			gasLimit: 200_000,
			authorizations: [{ by: authority.account, address: delegate }],
		});
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		const code = await system.chain.rpc("eth_getCode", [authority.address, "latest"]);
		assert.equal(code, `0xef0100${delegate.slice(2)}`);
		assert.equal(await fixture.pendingNonce(authority), 1, "an authorization uses a nonce");
		const own = authority.sign({ nonce: 1 });
		await fixture.submit("/noreverts", own);
		await fixture.waitUntilSent(own);
		await system.nextBlock();
		await fixture.reaches(own, "INCLUDED");
	});

	it("type 4 that uses an authority's nonce drops what was pending with it", async () => {
		const authority = await fixture.actor();
		const [first, second] = [authority.sign({ nonce: 0 }), authority.sign({ nonce: 1 })];
		await fixture.submit("/fast", first, second);
		await fixture.waitUntilSent(second);
		const delegating = (await fixture.actor()).sign({
			type: 4,
			gasLimit: 200_000,
			authorizations: [{ by: authority.account, address: TARGET }],
		});
		await fixture.publish(delegating);
		const block = await fixture.passBlock();
		await fixture.reaches(first, "DROPPED");
		await fixture.waitUntilSent(second, { block: block + 1 });
		await system.nextBlock();
		await fixture.reaches(second, "INCLUDED");
	});

	it("six blobs go in over HTTP within the limit of a request, and come out mined", async () => {
		const tx = (await fixture.actor()).sign({ type: 3, blobs: 6, sidecarVersion: 1 });
		await fixture.submit("/fullprivacy", tx);
		await fixture.waitUntilSent(tx, { builders: ["bundle"] });
		assert.deepEqual(fixture.deliveries(fixture.builder("share"), tx), []);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		const receipt = (await system.chain.rpc("eth_getTransactionReceipt", [tx.hash])) as {
			blobGasUsed: string;
		};
		assert.equal(Number(receipt.blobGasUsed), 6 * GAS_PER_BLOB);
	});

	it("a blob fee cap under the blob base fee is held as such, and the pending nonce counts it", async () => {
		const actor = await fixture.actor();
		const tx = actor.sign({ type: 3, maxFeePerBlobGas: 0n });
		await fixture.submit("/fast", tx);
		const words = /^max fee per blob gas less than block blob base fee: max fee 0, blob base fee \d+$/;
		const { status, stage } = await until("it waits", async () => {
			const found = await fixture.status(tx);
			return words.test(found.reason ?? "") && found;
		});
		assert.deepEqual([status, stage], ["UNKNOWN", "PENDING"]);
		assert.equal(await fixture.pendingNonce(actor), 1);
	});
});

/**
 * `raw`, of which ethers says that it has one proof a blob, as ethers writes it with cell proofs.
 */
function withCellProofs(raw: string): string {
	const tx = Transaction.from(raw);
	assert.equal(tx.blobWrapperVersion, null);
	tx.blobs = (tx.blobs ?? []).map(({ data, commitment }) => ({
		...{ data, commitment },
		proof: concat(kzg.cellProofs(Buffer.from(data.slice(2), "hex"))),
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
			...{ type: 3, chainId: 31_337, nonce: 0, gasLimit: 100_000, to: TARGET, ...BLOB_FEES },
			...{ kzg, blobs: walletBlobs.v0.blobs.map((blob) => Buffer.from(blob)) },
		});
		const hash = String(Transaction.from(raw).hash);
		assert.equal(await system.client.send(raw, "/fast"), hash);
		await isMined(raw, hash, actor);
	});
	it("viem, of raw blobs", async () => {
		const actor = await fixture.actor();
		const raw = await privateKeyToAccount(actor.account.keyHex as `0x${string}`).signTransaction({
			...{ type: "eip4844", chainId: 31_337, nonce: 0, gas: 100_000n, to: TARGET, ...BLOB_FEES },
			...{ kzg, blobs: walletBlobs.v0.blobs },
		});
		const viem = createPublicClient({ transport: http(`${system.client.url}/fast`) });
		const hash = await viem.sendRawTransaction({ serializedTransaction: raw });
		await isMined(raw, hash, actor);
	});
});

describe("what proves nothing", () => {
	it("is refused before it is acknowledged, and nothing is kept of it", async () => {
		const actor = await fixture.actor();
		const options = { type: 3, sidecarVersion: 0 } as const;
		const raw = `0x${rawTransaction({ ...options, sidecar: wrong, by: actor.account }).toString("hex")}`;
		const { error } = await system.client.ask("eth_sendRawTransaction", [raw]);
		assert.deepEqual(error, {
			code: -32000,
			message: "KZG verification error: can't verify opening proof",
			data: { reason: "BLOBS" },
		});
		assert.equal(await fixture.pendingNonce(actor), 0);
		// The same hash with its right sidecar is a new one then.
		const good = actor.sign(options);
		await fixture.submit("/fast", good);
		await fixture.event(good, "delivered");
	});
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
		const v0 = actor.sign({ type: 3, sidecarVersion: 0 });
		const v1 = actor.sign({ type: 3, sidecarVersion: 1 });
		await system.client.call("mev_sendBundle", await bundle(v0.raw));
		await fixture.waitUntilSent(v1);
	});
	it("what proves nothing is refused", async () => {
		const actor = await fixture.actor();
		const { raw } = actor.sign({ type: 3, sidecarVersion: 0, sidecar: wrong });
		const { error } = await system.client.ask("mev_sendBundle", await bundle(raw));
		assert.match(error?.message ?? "", /^KZG verification error: can't verify opening proof$/);
	});
});

// Last, because the relay that starts anew would load the library again for another blob.
describe("over a restart", () => {
	it("blobs are replaced only by 10 % more on the blob fee too, and survive a restart with their sidecar", async () => {
		const actor = await fixture.actor();
		const bumped = { maxFeePerGas: 22n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
		const old = actor.sign({ type: 3, maxFeePerBlobGas: 10n * GWEI });
		await fixture.submit("/fast", old);
		const short = actor.sign({ type: 3, ...bumped, maxFeePerBlobGas: 11n * GWEI - 1n });
		const { error } = await system.client.ask("eth_sendRawTransaction", [short.raw]);
		assert.match(`${error?.code} ${error?.message}`, /^-32000 replacement transaction underpriced/);
		const fresh = actor.sign({ type: 3, ...bumped, maxFeePerBlobGas: 11n * GWEI });
		await fixture.submit("/fast", fresh);
		await fixture.reaches(old, "REPLACED");
		await system.restart();
		await fixture.passBlock();
		await fixture.waitUntilSent(fresh);
		await system.nextBlock();
		await fixture.reaches(fresh, "INCLUDED");
	});
});
