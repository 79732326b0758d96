// The receipts that the relay signs: what they say on each path and after each end, over
// reorganisations and restarts, who may read them, and what docs/examples/verify.ts makes of them
// on the chain that the test runs.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { verifyTypedData } from "ethers";
import { type Receipt, verify } from "../../../docs/examples/verify.ts";
import { WATCH_BLOCKS } from "../../../relay/domain/transaction.ts";
import { startDevChain } from "../../devnet/devChain.ts";
import { type AuctionFixture, startAuction, type Target } from "../../support/bidder.ts";
import { snippet } from "../../support/documents.ts";
import { launchRelay, withTestLoader } from "../../support/processes.ts";
import { askReceipt, endedReceipt, receiptOf, receiptSigner } from "../../support/receipts.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { ETHER, type Signed } from "../../support/relayFixture.ts";
import { testAccount } from "../../support/txFactory.ts";
import { cancelSignature, readHeader } from "../../support/typedSignatures.ts";
import { until } from "../../support/until.ts";

const LIFE_BLOCKS = 3;
const STRANGER = "198.51.100.2";
const BUILDERS = [{ name: "dev", fullPrivacy: true }, { name: "other" }];

let fixture: AuctionFixture;
let url: string;
/** The options of the verifier. */
let options: { readonly rpc: string; readonly signer: string };
before(async () => {
	fixture = await startAuction({
		proxied: true,
		builders: BUILDERS,
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	({ url } = fixture.system.client);
	options = { rpc: fixture.system.chain.url, signer: await receiptSigner(url) };
});
after(() => fixture.system.stop());

/** A target in a block with its refund, and its receipt. */
async function refunded(
	of = fixture,
	path?: string,
): Promise<{ readonly target: Target; readonly receipt: Receipt }> {
	const target = await of.target(path);
	await of.offerOut(target, ETHER / 100n);
	await of.system.nextBlock();
	return { target, receipt: await endedReceipt(of.system.client.url, target, "INCLUDED") };
}

/** A pending transaction that builders have. */
async function pending(
	path = "/fast",
): Promise<Signed & { readonly by: Awaited<ReturnType<AuctionFixture["actor"]>> }> {
	const by = await fixture.actor();
	const tx = by.sign();
	await fixture.submit(path, tx);
	await fixture.waitUntilSent(tx, { builders: ["dev"] });
	return { ...tx, by };
}

/** The last block leaves the chain, and an empty one takes its place. */
async function dropBlock(): Promise<void> {
	const release = fixture.system.node?.hold();
	await fixture.system.chain.rpc("anvil_reorg", [1, []]).finally(release);
	await fixture.passBlock();
}

describe("what was accepted", () => {
	for (const [path, mayBeDisclosed, builders] of [
		["fast", true, ["dev", "other"]],
		["noreverts", true, ["dev", "other"]],
		["fullprivacy", false, ["dev"]],
		["nochecks", false, ["dev", "other"]],
	] as const) {
		it(`on /${path} is in the statement, and its end is not yet`, async () => {
			const recipient = testAccount(7_301).address;
			const begun = Date.now();
			const { hash } = await pending(`/${path}?refundRecipient=${recipient}`);
			const { accepted, ended } = await receiptOf(url, { hash });
			const { acceptedAt, ...terms } = accepted.statement;
			assert.deepEqual(terms, {
				...{ chainId: 31_337, signer: options.signer, transaction: hash, path, mayBeDisclosed },
				...{ refundPercent: 90, refundRecipient: recipient, builders },
			});
			assert.ok(Date.parse(acceptedAt) >= begun && Date.parse(acceptedAt) <= Date.now());
			assert.equal(ended, null);
			const { verdict, why } = await verify({ accepted, ended }, options);
			assert.deepEqual([verdict, /has not ended/.test(why)], ["can't tell", true]);
		});
	}

	it("by several owners is the strictest of their requests, and the recipient that all of them name", async () => {
		const by = await fixture.actor();
		const tx = by.sign({ nonce: 1 });
		await fixture.submit(`/fast?refundRecipient=${testAccount(7_302).address}`, tx);
		const other = new RelayClient(url, { "x-forwarded-for": STRANGER });
		assert.equal(
			await other.send(tx.raw, `/fullprivacy?refundRecipient=${testAccount(7_303).address}`),
			tx.hash,
		);
		const own = (await receiptOf(url, tx)).accepted.statement;
		assert.deepEqual(
			[own.path, own.mayBeDisclosed, own.refundRecipient, own.builders],
			["fullprivacy", false, by.address, ["dev"]],
		);
		const { result } = await other.ask("service_receipt", [tx.hash]);
		assert.deepEqual((result as Receipt).accepted.statement, own);
	});
});

describe("how it ended", () => {
	it("with the refund paid is kept", async () => {
		const recipient = testAccount(7_304).address;
		const { target, receipt } = await refunded(fixture, `/fast?refundRecipient=${recipient}`);
		const event = await fixture.event(target, "refunded");
		const { block, blockHash, refundRecipient, owed, paid, cancels } = receipt.ended?.statement ?? {};
		const { hash } = await fixture.block(Number(event.block));
		assert.deepEqual(
			{ block, blockHash, refundRecipient, owed, paid, cancels },
			{
				...{ block: event.block, blockHash: hash, refundRecipient: recipient },
				...{ owed: event.owed, paid: event.paid, cancels: [] },
			},
		);
		assert.equal(await fixture.balance(recipient), BigInt(paid ?? 0));
		const verdict = await verify(receipt, options);
		assert.deepEqual(verdict, {
			verdict: "kept",
			why: `${paid} wei of refund were paid to ${recipient}, ${owed} were owed`,
		});
	});

	it("with half of the refund paid is broken by the builder of its block", async (t) => {
		// At a gwei for each gas, about half of what is owed.
		const half = await startAuction({ builder: { refundGas: 4_500_000n } });
		t.after(() => half.system.stop());
		const { receipt } = await refunded(half);
		const { owed = "0", paid = "0", block = 0 } = receipt.ended?.statement ?? {};
		assert.ok(
			BigInt(paid) > BigInt(owed) / 4n && BigInt(paid) < (BigInt(owed) * 3n) / 4n,
			`${paid} of ${owed}`,
		);
		const { coinbase } = await half.block(block);
		assert.deepEqual(
			await verify({ jsonrpc: "2.0", id: 1, result: receipt }, { rpc: half.system.chain.url }),
			{
				verdict: "broken",
				why: `${owed} wei of refund were owed, ${paid} were paid in the block`,
				by: `the builder of block ${block} (${coinbase})`,
			},
		);
	});

	it("mined in spite of an acknowledged cancel is broken, and kept while it is not mined", async () => {
		const tx = await pending();
		assert.equal(await fixture.system.client.call("eth_cancelTransaction", [tx.hash]), true);
		const head = await fixture.head();
		const before = await endedReceipt(url, tx, "CANCELLED");
		const { cancels: [{ at, ...cancel } = { at: "" }] = [] } = before.ended?.statement ?? {};
		assert.deepEqual(cancel, { block: head, by: "address", builders: ["dev", "other"] });
		assert.equal((await verify(before, options)).verdict, "kept");
		await fixture.publish(tx);
		const number = await fixture.passBlock();
		const { coinbase } = await fixture.block(number);
		const expected = {
			verdict: "broken",
			why: `it is in block ${number}, though its cancel was acknowledged at block ${head} (${at})`,
			by: `the builder of block ${number} (${coinbase})`,
		};
		const old = await verify(before, options);
		assert.deepEqual([old.verdict, /get its receipt again/.test(old.why)], ["can't tell", true]);
		const now = await endedReceipt(url, tx, "INCLUDED");
		assert.deepEqual(now.ended?.statement.cancels, before.ended?.statement.cancels);
		assert.deepEqual(await verify(now, options), expected);
		await dropBlock();
		const again = await endedReceipt(url, tx, "CANCELLED");
		assert.deepEqual(again.ended?.statement.cancels, before.ended?.statement.cancels);
	});

	for (const [by, end] of [
		[
			"sender",
			async ({ hash, by: { account } }: Awaited<ReturnType<typeof pending>>) =>
				void (await fixture.system.client.call("eth_cancelTransaction", [
					hash,
					await cancelSignature(account.keyHex, hash),
				])),
		],
		[
			"replacement",
			async ({ by: actor }: Awaited<ReturnType<typeof pending>>) =>
				fixture.submit(
					"/fast",
					actor.sign({ maxFeePerGas: 40n * 10n ** 9n, maxPriorityFeePerGas: 2n * 10n ** 9n }),
				),
		],
	] as const) {
		it(`names the right of a ${by}`, async () => {
			const tx = await pending();
			await end(tx);
			const stage = by === "sender" ? "CANCELLED" : "REPLACED";
			const { ended } = await endedReceipt(url, tx, stage);
			assert.deepEqual(
				ended?.statement.cancels.map((one) => one.by),
				[by],
			);
		});
	}

	it("expired and never mined is kept", async () => {
		const tx = await pending();
		for (let i = 0; i <= LIFE_BLOCKS; i += 1) await fixture.passBlock();
		const receipt = await endedReceipt(url, tx, "EXPIRED");
		assert.equal((await verify(receipt, options)).verdict, "kept");
	});

	it("follows its block out of the chain and back", async () => {
		const { target, receipt } = await refunded();
		await dropBlock();
		assert.equal((await receiptOf(url, target)).ended, null);
		const stale = await verify(receipt, options);
		assert.deepEqual([stale.verdict, /does not have its block/.test(stale.why)], ["can't tell", true]);
		await fixture.waitUntilSent(target, { builders: ["dev"] });
		await fixture.system.nextBlock();
		const again = await endedReceipt(url, target, "INCLUDED");
		assert.notEqual(again.ended?.statement.blockHash, receipt.ended?.statement.blockHash);
		assert.equal((await verify(again, options)).verdict, "kept");
		const old = await verify(receipt, options);
		assert.deepEqual([old.verdict, /get its receipt again/.test(old.why)], ["can't tell", true]);
	});
});

describe("the same receipt", () => {
	it("comes after a restart, with the same signer", async () => {
		const { target, receipt } = await refunded();
		const open = await pending();
		const before = await receiptOf(url, open);
		await fixture.system.restart();
		assert.equal(await receiptSigner(url), options.signer);
		assert.deepEqual(await endedReceipt(url, target, "INCLUDED"), receipt);
		assert.deepEqual(await receiptOf(url, open), before);
	});

	it("comes for the sender's signature from anywhere, and once the addresses are forgotten for that alone", async () => {
		const { target, receipt } = await refunded();
		const bySender = () => receiptOf(url, target, target.user.account, STRANGER);
		assert.deepEqual(await bySender(), receipt);
		for (let left = WATCH_BLOCKS + 1; left > 0; left -= 33) {
			await fixture.system.chain.rpc("anvil_mine", ["0x21", "0xc"]);
			await fixture.seesHead(await fixture.head());
		}
		await until("it is archived", async () => (await askReceipt(url, target)).error !== undefined);
		assert.deepEqual(await bySender(), receipt);
	});
});

describe("for anybody else", () => {
	it("the answer is that for an unknown hash, to the byte", async () => {
		const unknown = { hash: `0x${"ab".repeat(32)}` };
		const mined = (await refunded()).target;
		const [hidden, open] = [await pending("/fullprivacy"), await pending()];
		await fixture.system.client.call("eth_cancelTransaction", [open.hash]);
		const answers = new Set<string>();
		for (const { hash } of [unknown, hidden, open, mined]) {
			for (const headers of [{ "x-forwarded-for": STRANGER }, { origin: "https://page.example" }]) {
				const answer = await fetch(url, {
					method: "POST",
					headers: { "content-type": "application/json", ...headers },
					body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "service_receipt", params: [hash] }),
				});
				const { date: _, "x-request-id": __, ...rest } = Object.fromEntries(answer.headers);
				answers.add(JSON.stringify([answer.status, rest, await answer.text()]));
			}
		}
		const { error } = await askReceipt(url, hidden, testAccount(7_305), STRANGER);
		assert.equal(answers.size, 1, [...answers].join("\n"));
		assert.ok([...answers][0]?.includes(JSON.stringify(JSON.stringify(error)).slice(1, -1)));
	});
});

describe("npm run verify", () => {
	it("checks a receipt that is fetched as docs/wallets.md has it, prints the verdict, and exits with its code", async () => {
		const { target } = await refunded();
		const fetched = snippet("docs/wallets.md", "const asked =");
		const header = await readHeader(target.user.account.keyHex, { scope: "receipts" });
		let text = "";
		const writeFile = (name: string, written: string): void => {
			assert.equal(name, "receipt.json");
			text = written;
		};
		const given = { base: url, hash: target.hash, header, writeFile };
		await new Function(...Object.keys(given), `return (async () => {${fetched}})()`)(...Object.values(given));
		const file = join(fixture.system.env.DATA_DIR ?? "", "receipt.json");
		writeFileSync(file, text);
		const line = withTestLoader(snippet("docs/wallets.md", "npm run verify -- ").trim())
			.replace("npm run verify --", "exec node --import ./test/loader/register.mjs docs/examples/verify.ts")
			.replace("receipt.json", file)
			.replace("https://node.example", options.rpc)
			.replace("0x…", options.signer);
		const { code, stdout } = await launchRelay({ line, env: {} }).ended();
		assert.deepEqual([code, /^kept: \d+ wei of refund were paid [^\n]*\n$/.test(stdout)], [0, true], stdout);
		const entry = "docs/examples/verify.ts";
		const alone = await launchRelay({ entry, args: [file], env: {} }).ended();
		const untold = "can't tell: the chain was not asked: add --rpc with the URL of a node\n";
		assert.deepEqual([alone.code, alone.stdout], [2, untold]);
	});

	it("believes no other signer, no changed statement, and no other chain", async (t) => {
		const { receipt } = await refunded();
		const other = await startDevChain({ chainId: 31_338 });
		t.after(() => other.stop());
		const { accepted, ended } = receipt;
		const changed = { accepted, ended: ended && { ...ended, statement: { ...ended.statement, owed: "1" } } };
		for (const [given, more, why] of [
			[
				receipt,
				{ ...options, signer: testAccount(1).address },
				/^it is signed by 0x\w{40}, not by 0x\w{40}$/,
			],
			[changed, options, /^a statement was changed after it was signed/],
			[receipt, { ...options, rpc: other.url }, /^the node is of chain 31338, the receipt of chain 31337$/],
		] as const) {
			const verdict = await verify(given, more);
			assert.deepEqual([verdict.verdict, why.test(verdict.why)], ["can't tell", true], verdict.why);
		}
	});

	it("needs no more than docs/api.md has of the typed data", async () => {
		const { receipt } = await refunded();
		const { Accepted, ...Ended } = JSON.parse(snippet("docs/api.md", '{"Accepted": [')) as Structs;
		for (const [signed, structs] of [
			[receipt.accepted, { Accepted }],
			[receipt.ended, Ended],
		] as const) {
			const { statement = { chainId: 0, signer: "" }, signature = "" } = signed ?? {};
			const domain = { name: "Leeward", version: "1", chainId: statement.chainId };
			const signer = verifyTypedData(domain, structs as Structs, statement, signature);
			assert.equal(signer.toLowerCase(), statement.signer);
		}
	});
});

type Structs = Record<string, { name: string; type: string }[]>;
