// Records all that a searcher can find out about a transaction in the feed: by its status routes,
// event stream, subscription, bids, and cancels, to which he has no right. Replaces times, hashes,
// addresses and ids, so that the records of two runs can be compared.

import { request } from "undici";
import type { AuctionFixture, Bidder } from "./bidder.ts";
import { MISER, REVERTER } from "./biddingFixture.ts";
import { EventStreamReader, postText, RawConnection } from "./clients.ts";
import type { FeedClient, Told } from "./feeds.ts";
import type { Signed } from "./relayFixture.ts";
import { until } from "./until.ts";

/** A searcher who looks at one transaction. */
export class SearcherView {
	readonly bidder: Bidder;
	readonly #fixture: AuctionFixture;
	readonly #tx: Signed;
	readonly #feed: FeedClient;
	readonly #first: number;
	readonly #lines: string[] = [];
	readonly #subscriptions: string[] = [];
	#stream: EventStreamReader | null = null;
	#bundle = "";

	private constructor(fixture: AuctionFixture, tx: Signed, bidder: Bidder, feed: FeedClient, first: number) {
		this.bidder = bidder;
		this.#fixture = fixture;
		this.#tx = tx;
		this.#feed = feed;
		this.#first = first;
	}

	/** Subscribes to the feed, before `tx` is submitted. */
	static async open(fixture: AuctionFixture, tx: Signed): Promise<SearcherView> {
		const bidder = await fixture.bidder();
		const feed = await bidder.connect();
		const view = new SearcherView(fixture, tx, bidder, feed, await fixture.head());
		view.#subscriptions.push(await feed.subscribe("service_partialPendingTransactions"));
		return view;
	}

	/** The notifications of his bid. */
	get bundleNews(): readonly Told[] {
		return this.#subscriptions.slice(2).flatMap((id) => this.#feed.received(id));
	}

	/** Follows the transaction from now on, by event stream and subscription. */
	async follow(): Promise<void> {
		const url = `${this.#fixture.system.client.url}/tx/${this.#tx.hash}/events`;
		this.#stream = await EventStreamReader.open(url, { "x-forwarded-for": this.bidder.from });
		this.#subscriptions.push(await this.#feed.subscribe("service_transactionStatus", this.#tx.hash));
	}

	/**
	 * Bids on it with a uuid of his own, and follows the bid. Returns the backrun; null if it is
	 * refused.
	 */
	async bid(value: bigint): Promise<Signed | null> {
		const backrun = this.bidder.backrun(value);
		const answer = await this.bidder.tryBid(this.#tx, backrun, { uuid: "view" });
		this.#lines.push(`bid ${JSON.stringify(answer)}`);
		if (!("hash" in answer)) return null;
		this.#bundle = answer.hash;
		this.#subscriptions.push(await this.#feed.subscribe("service_bundleStatus", answer.hash));
		return backrun;
	}

	/**
	 * Reads its status routes and all reports of bids, and tries to cancel it, to simulate behind it
	 * and to bid on it in ways that are refused.
	 */
	async look(what: string): Promise<void> {
		const { hash } = this.#tx;
		const head = await this.#fixture.head();
		const block = { blockNumber: `0x${(head + 1).toString(16)}`, stateBlockNumber: `0x${head.toString(16)}` };
		const calls: readonly (readonly [string, readonly unknown[]])[] = [
			["eth_cancelTransaction", [hash]],
			["eth_getTransactionByHash", [hash]],
			["eth_getTransactionReceipt", [hash]],
			["eth_callMany", [{ txs: [hash, this.bidder.backrun(9n).raw], ...block }]],
			...this.#refusedBids().map((bundle) => ["eth_sendBundle", [bundle]] as const),
			...(this.#bundle === "" ? [] : this.#statistics(head)),
		];
		const from = { "X-Forwarded-For": this.bidder.from };
		for (const [method, params] of calls) {
			const connection = await RawConnection.open(this.#fixture.system.relay.port);
			connection.write(postText("/", { jsonrpc: "2.0", id: 1, method, params }, from));
			const { status, body } = await connection.answer();
			connection.destroy();
			this.#lines.push(`${what} ${method} ${status} ${body}`);
		}
		const url = this.#fixture.system.client.url;
		const status = await request(`${url}/tx/${hash}`);
		this.#lines.push(`${what} status ${await status.body.text()}`);
		const page = await request(`${url}/tx/${hash}/events`);
		const { events, ...rest } = (await page.body.json()) as { events: object[] };
		this.#lines.push(`${what} page ${JSON.stringify(rest)}`, ...eventLines(`${what} page`, events));
		if (this.#bundle === "") return;
		const bundle = await request(`${url}/bundle/${this.#bundle}`, { headers: from });
		const { blocks, ...about } = (await bundle.body.json()) as { blocks: { builders: object[] }[] };
		this.#lines.push(`${what} bundle ${JSON.stringify(about)}`);
		for (const { builders, ...one } of blocks) {
			this.#lines.push(`${what} bundle ${JSON.stringify(one)}`, ...eventLines(`${what} bundle`, builders));
		}
	}

	/** Bids on it that pay nothing, revert, or have a wrong nonce or block. */
	#refusedBids(): readonly object[] {
		const txsOf = (backrun: Signed) => ({ txs: [this.#tx.hash, backrun.raw] });
		return [
			txsOf(this.bidder.backrun(9n, { to: MISER })),
			txsOf(this.bidder.backrun(9n, { to: REVERTER })),
			txsOf(this.bidder.backrun(9n, { nonce: this.bidder.nonce + 2 })),
			{ ...txsOf(this.bidder.backrun(9n)), blockNumber: "0x0" },
		];
	}

	/** The reports of his bids besides their pages. */
	#statistics(head: number): readonly (readonly [string, readonly unknown[]])[] {
		const inBlocks = [head, head + 1].map((block) => ({
			bundleHash: this.#bundle,
			blockNumber: `0x${block.toString(16)}`,
		}));
		return [
			...["service_bundles", "service_searcherStats"].map((method) => [method, []] as const),
			["service_searcherStats", [{ byBlock: 500 }]],
			...["flashbots_getUserStats", "flashbots_getUserStatsV2"].map((method) => [method, []] as const),
			...["flashbots_getBundleStats", "flashbots_getBundleStatsV2"].flatMap((method) =>
				inBlocks.map((bundle) => [method, [bundle]] as const),
			),
		];
	}

	/**
	 * Stops, and returns all that was seen in comparable form; `names` maps what differs between runs
	 * to a common name.
	 */
	async end(names: Readonly<Record<string, string>>): Promise<readonly string[]> {
		const { system } = this.#fixture;
		await until("the stream and the page are level", async () => {
			const events = await system.client.events(this.#tx.hash);
			const told = this.#stream?.messages.map(({ data }) => data) ?? [];
			return this.#stream === null || told.filter(isOfNoBid).length === events.filter(isOfNoBid).length;
		});
		const stream = this.#stream?.messages.map(({ data }) => data) ?? [];
		const notifications = this.#subscriptions.flatMap((id, i) => {
			const all = this.#feed.received(id).filter((one) => i > 0 || one.hash === this.#tx.hash);
			// A bundle's status is sent again for each builder's answer, in any order.
			const lines = all.map(({ builders: _, ...one }) => `subscription ${i} ${JSON.stringify(one)}`);
			return lines.filter((line, k) => i < 2 || line !== lines[k - 1]);
		});
		this.#stream?.leave();
		this.bidder.close();
		return [...this.#lines, ...eventLines("stream", stream), ...notifications].map((line) =>
			this.#masked(line, names),
		);
	}

	#masked(line: string, names: Readonly<Record<string, string>>): string {
		let text = line.toLowerCase();
		const own = { ...names, [this.#tx.hash]: "THIS", [this.#tx.from]: "SENDER", [this.#bundle]: "BUNDLE" };
		for (const [value, name] of Object.entries(own)) {
			const bare = value.replace("0x", "").toLowerCase();
			if (bare !== "") text = text.replaceAll(bare, name);
		}
		return text
			.replaceAll(/"(at|\w+at|day|timestamp|rpc_timestamp|blocktimestamp)":"[^"]*"/g, '"$1":"TIME"')
			.replaceAll(/fee recipient 0x[0-9a-f]{40}/g, "fee recipient SOMEBODY")
			.replaceAll(/"(ms|feedtobidms)":\d+/g, '"$1":0')
			.replaceAll(/"blocktimestamp":\d+/g, '"blocktimestamp":0')
			.replaceAll(/"effectivegasprice":"0x[0-9a-f]+"/g, '"effectivegasprice":"PRICE"')
			.replaceAll(/"(blockhash|result|stateroot)":"0x[0-9a-f]{64}"/g, '"$1":"HASH"')
			.replaceAll(
				/"(block|blocknumber|firstblock)":(\d+)/g,
				(_, key, n) => `"${key}":+${Number(n) - this.#first}`,
			)
			.replaceAll(/seen in block (\d+)/g, (_, n) => `seen in block +${Number(n) - this.#first}`)
			.replaceAll(
				/"blocknumber":"0x([0-9a-f]+)"/g,
				(_, n) => `"blocknumber":+${Number(`0x${n}`) - this.#first}`,
			);
	}
}

/**
 * Whether an event reports no bid: the page has those of bids from the block on, and the stream
 * those that come behind it.
 */
function isOfNoBid(event: { readonly type?: unknown; readonly backrun?: unknown }): boolean {
	return event.type !== "bundled" && event.backrun !== true;
}

/** The first line in which two records differ, in both versions; null if they are equal. */
export function firstDifference(one: readonly string[], other: readonly string[]): string | null {
	const length = Math.max(one.length, other.length);
	for (let i = 0; i < length; i++) {
		if (one[i] !== other[i]) return `line ${i}:\n${one[i] ?? "the end"}\nagainst\n${other[i] ?? "the end"}`;
	}
	return null;
}

/**
 * Events as lines. Builders answer in any order, so their events come last, and without what
 * depends on that order: how many had confirmed, and the transaction's stage then.
 */
function eventLines(what: string, events: readonly object[]): readonly string[] {
	const isOfBuilder = (event: object): boolean => "builder" in event;
	const own = events.filter((event) => !isOfBuilder(event));
	const builders = events.filter(isOfBuilder).map((event) => ({ ...event, stage: undefined }));
	const texts = (list: readonly object[]) =>
		list.map((event) => JSON.stringify({ ...event, cancels: undefined }));
	return [...texts(own), ...texts(builders).sort()].map((text) => `${what} ${text}`);
}
