// Two searchers of the leak test of the relay: one's backruns, whose bytes, names and amounts
// resemble no other text, win, lose, are refused and are cancelled. The other one, a rival who
// knows or guesses every hash, looks at all that he can.

import assert from "node:assert/strict";
import { Transaction } from "ethers";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { backrunBy, MISER, PAYER, REVERTER, type Signed, signedBy } from "../../support/biddingFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { LeakWatch, Secret } from "../../support/leakWatch.ts";
import type { RelayClient } from "../../support/relayClient.ts";
import { bundleHashOf } from "../../support/secretFixture.ts";
import { until } from "../../support/until.ts";
import { refusedBids } from "./refusedBodies.ts";

export const BID_CALLDATA = `0x${"ba5eba11deadcafe".repeat(5)}`;
/** Signs the searcher's requests. */
export const SEARCHER_KEY = `0x${"d4".repeat(32)}`;
const OWN = { "x-forwarded-for": "198.51.100.11" };
const RIVAL = { "x-forwarded-for": "198.51.100.12" };
const UUID = "uuid-of-the-searcher-canary";

/** Bids in wei; each is found again in decimal and hex. */
const early = canary(10, 3_133_711_122_001n);
const winner = canary(11, 3_133_755_566_003n);
const loser = canary(12, 3_133_700_011_002n);
const share = canary(13, 3_133_799_988_005n);
const withdrawn = canary(14, 3_133_777_777_006n);
const plain = [canary(15, 3_133_788_888_007n), canary(16, 3_133_788_888_008n)] as const;
const refused = [canary(17, 1n, REVERTER), canary(18, 1n, MISER)];

export const targets = [signedBy(0, { value: 1n }), signedBy(1, { value: 1n })] as const;
/** Backruns that builders receive. */
export const SENT: readonly Signed[] = [early, winner, share, withdrawn, ...plain];
/** Those of them that builders have when the block is due. */
const DUE: readonly Signed[] = [winner, share, ...plain];
/** Backruns that the relay refuses. */
export const REFUSED: readonly Signed[] = refused;
export const BACKRUNS: readonly Signed[] = [...SENT, loser, ...refused];

/** Names of bids that did not win, and the searcher's uuid for some. */
export const LOSING: readonly Secret[] = [
	...[early, loser, withdrawn, ...refused].flatMap(namesOf),
	{ name: "uuid", value: UUID },
];
/** Names of bids that the block holds, and the contract that they pay through. */
export const WINNING: readonly Secret[] = [
	...DUE.flatMap(namesOf),
	{ name: "the contract that pays", value: PAYER },
];

/** Bids as one searcher, and looks as another. */
export class BidCanaries {
	/** Signatures of requests. */
	readonly signatures: string[] = [];
	readonly #client: RelayClient;
	readonly #watch: LeakWatch;
	readonly #own: FeedClient;
	readonly #rival: FeedClient;
	/** The rival's subscriptions to bundles whose hashes he guessed. */
	readonly #guesses: string[] = [];

	private constructor(client: RelayClient, watch: LeakWatch, own: FeedClient, rival: FeedClient) {
		this.#client = client;
		this.#watch = watch;
		this.#own = own;
		this.#rival = rival;
	}

	/** Opens the feeds of both. */
	static async open(client: RelayClient, watch: LeakWatch): Promise<BidCanaries> {
		const url = client.url.replace("http", "ws");
		const own = await FeedClient.open(url, { headers: OWN });
		const rival = await FeedClient.open(url, { headers: RIVAL });
		await rival.subscribe("service_partialPendingTransactions");
		await rival.subscribe("newHeads");
		return new BidCanaries(client, watch, own, rival);
	}

	/**
	 * Submits the targets, and bids on them for block `number`. `isOut` is asked until the builders
	 * have all that is due.
	 */
	async bid(number: number, isOut: (raws: readonly string[]) => boolean): Promise<void> {
		const [first, second] = [targets[0].hash, targets[1].hash];
		const guessed = [
			...[early, winner, loser].map(({ hash }) => bundleHashOf(first, hash)),
			...[withdrawn, share].map(({ hash }) => bundleHashOf(second, hash)),
		];
		for (const hash of guessed) this.#guesses.push(await this.#rival.subscribe("service_bundleStatus", hash));
		for (const { raw, hash } of targets) {
			await this.#client.send(raw, "/maxbackruns");
			await until("it is disclosed and sent", async () => (await this.#client.stage(hash)) === "BROADCAST");
		}
		for (const { raw } of [early, winner, loser]) await this.#bid({ txs: [first, raw] });
		await this.#bid({ txs: [second, withdrawn.raw], replacementUuid: UUID });
		const cancelled = await this.#own.ask("eth_cancelBundle", [{ replacementUuid: UUID }]);
		assert.equal(cancelled.result, 200);
		for (const { raw } of refused) await this.#bid({ txs: [first, raw], replacementUuid: UUID }, true);
		const bundle = {
			version: "v0.1",
			inclusion: { block: `0x${number.toString(16)}` },
			replacementUuid: UUID,
		};
		const bodyOf = (list: readonly Signed[]) => list.map(({ raw }) => ({ tx: raw, canRevert: false }));
		await this.#signedCall({ ...bundle, body: [{ hash: second }, ...bodyOf([share])] });
		await this.#signedCall({ ...bundle, replacementUuid: `${UUID} 2`, body: bodyOf(plain) });
		// A bid of the rival's own, which makes the relay notify him that he lost.
		const rivals = await this.#rival.ask("eth_sendBundle", [{ txs: [second, backrunBy(30, 5n).raw] }]);
		await this.#rival.subscribe("service_bundleStatus", rivals.result);
		for (const body of refusedBids(winner.raw, first)) {
			const init = { method: "POST", headers: jsonHeaders(OWN), body };
			await this.#watch.fetched("error answers", this.#client.url, init);
		}
		await until("the builders have all of it", () => isOut(DUE.map(({ raw }) => raw)));
		await this.#lookAsRival("");
		this.#watch.saw("rival's feed", this.#rival.texts.join("\n"));
	}

	/** Looks again, once the block is mined. */
	async lookLater(): Promise<void> {
		const won = bundleHashOf(targets[0].hash, winner.hash);
		await until("the winner is notified", async () => {
			const url = `${this.#client.url}/bundle/${won}`;
			return (await this.#watch.fetched("own bundles", url, { headers: OWN })).includes("INCLUDED");
		});
		for (const [i, { hash }] of [winner, share].entries()) {
			const events = () => this.#client.events(targets[i]?.hash ?? "");
			await until("the target's page shows its backrun", async () =>
				JSON.stringify(await events()).includes(hash),
			);
		}
		await this.#lookAsRival(", later");
		this.#watch.saw("rival's feed, later", this.#rival.texts.join("\n"));
		this.#watch.saw("own feed", this.#own.texts.join("\n"));
		for (const id of this.#guesses)
			assert.deepEqual(this.#rival.received(id), [], "a guessed bundle's status");
		for (const feed of [this.#own, this.#rival]) feed.close();
	}

	async #bid(bundle: object, fails = false): Promise<void> {
		const answer = await this.#own.ask("eth_sendBundle", [bundle]);
		assert.equal(answer.error !== undefined, fails, JSON.stringify(answer));
		this.#watch.saw("own answers", JSON.stringify(answer));
		if (!fails) await this.#own.subscribe("service_bundleStatus", answer.result);
	}

	/** `mev_sendBundle`, signed. */
	async #signedCall(bundle: object): Promise<void> {
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "mev_sendBundle", params: [bundle] });
		const signature = createBodySigner(SEARCHER_KEY).sign(body);
		this.signatures.push(signature.split(":")[1] ?? "");
		const headers = { ...jsonHeaders(OWN), "x-flashbots-signature": signature };
		const text = await this.#watch.fetched("own answers", this.#client.url, {
			method: "POST",
			headers,
			body,
		});
		assert.ok(text.includes("bundleHash"), text);
	}

	async #lookAsRival(when: "" | ", later"): Promise<void> {
		for (const { hash } of targets) {
			for (const path of [`/tx/${hash}`, `/tx/${hash}/events`]) {
				await this.#watch.fetched(`rival's pages${when}`, `${this.#client.url}${path}`, { headers: RIVAL });
			}
			if (when === "") await this.#askAsRival(when, "eth_getRawTransactionByHash", [hash]);
		}
		for (const [i, { hash }] of BACKRUNS.entries()) {
			for (const target of targets) {
				const url = `${this.#client.url}/bundle/${bundleHashOf(target.hash, hash)}`;
				const page = await fetch(url, { headers: RIVAL });
				assert.equal(page.status, 404);
				this.#watch.saw(`rival's pages${when}`, await page.text());
			}
			await this.#askAsRival(when, "eth_sendBundle", [{ txs: [hash, backrunBy(31, 5n).raw] }]);
			const simulation = { txs: [hash], blockNumber: "0x2", stateBlockNumber: "0x0" };
			await this.#askAsRival(when, "eth_callMany", [simulation]);
			if (when !== "" && DUE.some((one) => one.hash === hash)) continue;
			await this.#askAsRival(when, "eth_getRawTransactionByHash", [hash]);
			await this.#askAsRival(when, "eth_getTransactionByHash", [hash]);
			const { from } = Transaction.from(BACKRUNS[i]?.raw ?? "");
			assert.equal(await this.#client.call("eth_getTransactionCount", [from, "pending"]), "0x0");
			assert.equal((await this.#client.status(hash)).stage, undefined);
		}
	}

	async #askAsRival(when: string, method: string, params: readonly unknown[]): Promise<void> {
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
		const init = { method: "POST", headers: jsonHeaders(RIVAL), body };
		const answer = await fetch(this.#client.url, init);
		this.#watch.saw(`rival's answers${when}`, await answer.text());
	}
}

function jsonHeaders(more: Readonly<Record<string, string>>): Record<string, string> {
	return { "content-type": "application/json", ...more };
}

function canary(index: number, value: bigint, to?: string): Signed {
	return backrunBy(index, value, { data: BID_CALLDATA, ...(to === undefined ? {} : { to }) });
}

/** Its hash, those of its bundles, its sender, and the amount where that resembles no other. */
function namesOf({ raw, hash }: Signed): readonly Secret[] {
	const { value, from } = Transaction.from(raw);
	const amounts = value > 1n ? [String(value), value.toString(16)] : [];
	const bundles = targets.map((target) => bundleHashOf(target.hash, hash));
	return [hash, ...bundles, String(from).toLowerCase(), ...amounts].map((one) => ({ name: one, value: one }));
}
