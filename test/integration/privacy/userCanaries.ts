// Users of the leak test of the relay: they submit transactions whose bytes resemble no other text,
// wait for them, cancel and replace them, and follow each to its end. All that they receive goes to
// the watch.

import assert from "node:assert/strict";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { LeakWatch } from "../../support/leakWatch.ts";
import { type Actor, GWEI, type RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

export const PATHS = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"] as const;
const SOFT_PATHS = ["/noreverts?softCancellations=1", "/fullprivacy?softCancellations=true"] as const;
export const CALLDATA = `0x${"c0ffee5ca1ab1e".repeat(5)}`;
/** Reverts with its call data, which makes the data of its failure a canary too. */
const REVERTER_CODE = "0x365f5f37365ffd";
const STRANGER_KEY = `0x${"b2".repeat(32)}`;
const STRANGER = { "x-forwarded-for": "198.51.100.2" };
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
export const LIFE_BLOCKS = 4;
/** Connections to a server that accepts 16 subscriptions on each. */
const FEEDS = 4;
/** The builder that builds the blocks. */
const BUILDER = "vault";
const FAILING = "failing";

/** One transaction, and the stream of its events. */
export interface Canary {
	/** How it is meant to end. */
	readonly what: string;
	readonly path: string;
	readonly actor: Actor;
	readonly tx: Signed;
	readonly stream: EventStreamReader;
}

type Headers = Readonly<Record<string, string>>;

/** Submits canaries to one relay. */
export class UserCanaries {
	readonly all: Canary[] = [];
	/** Signatures of requests. */
	readonly signatures: string[] = [];
	/** Results of `eth_getTransactionByHash` for pending transactions. */
	readonly pending: Readonly<Record<string, unknown>>[] = [];
	/** Hashes of those whose receipt has shown how they ended. */
	readonly receipts = new Set<string>();
	readonly #fixture: RelayFixture;
	readonly #watch: LeakWatch;
	readonly #feeds: FeedClient[] = [];
	#subscribed = 0;

	constructor(fixture: RelayFixture, watch: LeakWatch) {
		this.#fixture = fixture;
		this.#watch = watch;
	}

	get #url(): string {
		return this.#fixture.system.client.url;
	}

	/** Canaries that are meant to end as `what`. */
	of(what: string): readonly Canary[] {
		return this.all.filter((one) => one.what === what);
	}

	/** Opens the connections. */
	async connect(): Promise<void> {
		for (let i = 0; i < FEEDS; i++) this.#feeds.push(await FeedClient.open(this.#url.replace("http", "ws")));
	}

	/**
	 * Transactions on each path that are cancelled by their user, by a signature and softly, after
	 * others have failed to.
	 */
	async cancelSome(): Promise<void> {
		const place = "answers to cancels";
		for (const { tx } of await this.onAllPaths("cancelled")) {
			await this.#call(place, "eth_cancelTransaction", [tx.hash, tx.raw]);
			await this.#call(place, "eth_cancelTransaction", [tx.raw]);
			await this.cancelAsStranger(tx);
			await this.cancel(tx);
		}
		for (const { tx, actor } of await this.onAllPaths("cancelled by signature")) {
			for (const key of [STRANGER_KEY, actor.account.keyHex]) {
				const body = bodyOf("eth_cancelTransaction", [tx.hash]);
				const signature = createBodySigner(key).sign(body);
				this.signatures.push(signature.split(":")[1] ?? "");
				await this.#post(place, body, "/", { ...STRANGER, "x-flashbots-signature": signature });
			}
		}
		for (const path of SOFT_PATHS) {
			const { tx, actor } = await this.begin("cancelled softly", path);
			await this.#wait(actor.sign({ to: actor.address }).raw, 50);
			await this.#wait(tx.raw, 50);
		}
	}

	/**
	 * Transactions on each path whose replacement is first refused for its fees, and then accepted.
	 */
	async replaceSome(): Promise<void> {
		for (const { actor, path } of await this.onAllPaths("replaced")) {
			await this.submit(actor.sign({ data: CALLDATA, value: 2n }).raw, path);
			await this.begin("replacement", path, { actor, fees: BUMPED });
		}
	}

	/** Transactions on each path that the next block mines. Call the result to wait until it did. */
	async mineSome(): Promise<() => Promise<void>> {
		const mined = await this.onAllPaths("mined");
		// On their own paths: on another one builders would receive a cancel first.
		for (const { tx, path } of mined) await this.#wait(tx.raw, 1, path);
		const waits = mined.map(({ tx, path }) => this.#wait(tx.raw, 20_000, path));
		return async () => void (await Promise.all(waits));
	}

	/** A transaction that fails in the simulation, and reverts with its call data. */
	async failOne(): Promise<void> {
		const to = await this.#fixture.placeCode(REVERTER_CODE);
		await this.begin(FAILING, "/fast", { to });
	}

	/** Asks for all that is pending by its hash. */
	async readPending(): Promise<void> {
		for (const { tx } of [...this.of("mined"), ...this.of(FAILING)]) {
			const text = await this.#call("eth_getTransactionByHash", "eth_getTransactionByHash", [tx.hash]);
			this.pending.push((JSON.parse(text) as { result: Record<string, unknown> }).result);
			await this.#call("eth_getRawTransactionByHash", "eth_getRawTransactionByHash", [tx.hash]);
		}
	}

	/** One on each path. */
	onAllPaths(what: string): Promise<readonly Canary[]> {
		return Promise.all(PATHS.map((path) => this.begin(what, path)));
	}

	/** Submits one and follows it in every way. */
	async begin(
		what: string,
		path: string,
		{ actor, to, fees }: { readonly actor?: Actor; readonly to?: string; readonly fees?: object } = {},
	): Promise<Canary> {
		const by = actor ?? (await this.#fixture.actor());
		const tx = by.sign({ data: CALLDATA, gasLimit: 60_000, ...(to === undefined ? {} : { to }), ...fees });
		await this.submit(tx.raw, path);
		const url = `${this.#url}/tx/${tx.hash}/events`;
		this.#subscribed += 1;
		const nth = this.#subscribed;
		const stream = await EventStreamReader.open(url, { "x-forwarded-for": `203.0.113.${nth}` });
		assert.equal(stream.status, 200);
		const canary = { what, path, actor: by, tx, stream };
		this.all.push(canary);
		// A subscription would mix the failing one's events, which show call data, with those that
		// never do.
		if (what === FAILING) {
			await this.#fixture.reaches(tx, "SIMULATION_FAILED");
			return canary;
		}
		await this.#feeds[nth % FEEDS]?.subscribe("service_transactionStatus", tx.hash);
		await this.#fixture.waitUntilSent(tx, { builders: [BUILDER] });
		return canary;
	}

	/** Waits until each that is meant to end as `what` has this stage. */
	async reach(what: string, stage: string): Promise<void> {
		for (const { tx } of this.of(what)) await this.#fixture.reaches(tx, stage);
	}

	submit(raw: string, path = "/fast"): Promise<string> {
		return this.#call("answers to submissions", "eth_sendRawTransaction", [raw], path);
	}

	cancel({ hash }: Signed): Promise<string> {
		return this.#call("answers to cancels", "eth_cancelTransaction", [hash]);
	}

	cancelAsStranger({ hash }: Signed): Promise<string> {
		return this.#call("answers to cancels", "eth_cancelTransaction", [hash], "/", STRANGER);
	}

	/** Reads the pages of each. */
	async look(): Promise<void> {
		for (const { tx, what } of this.all) {
			const whose = what === FAILING ? " of the failing one" : "";
			await this.#watch.fetched(`status${whose}`, `${this.#url}/tx/${tx.hash}`);
			await this.#watch.fetched(`events${whose}`, `${this.#url}/tx/${tx.hash}/events`);
			const receipt = await this.#call("receipts", "service_receipt", [tx.hash]);
			if (receipt.includes('"ended":{')) this.receipts.add(tx.hash);
			await this.#call("receipts for a stranger", "service_receipt", [tx.hash], "/", STRANGER);
		}
	}

	/** Waits for the rest of the streams and ends them. */
	async leave(): Promise<void> {
		for (const { tx, what, stream } of this.all) {
			await until("the stream has all events of the page", async () => {
				return stream.messages.length === (await this.#fixture.events(tx)).length;
			});
			const whose = what === FAILING ? " of the failing one" : "";
			this.#watch.saw(`event stream${whose}`, `${JSON.stringify(stream.headers)} ${stream.text}`);
			stream.leave();
		}
		for (const { texts, close } of this.#feeds.map((feed) => ({
			texts: feed.texts,
			close: () => feed.close(),
		}))) {
			this.#watch.saw("status subscription", texts.join("\n"));
			close();
		}
	}

	/** The last stages of the canaries, by how they were meant to end. */
	ends(): Readonly<Record<string, string>> {
		const stageOf = ({ stream }: Canary): unknown =>
			stream.messages.findLast(({ data }) => data.stage !== undefined)?.data.stage;
		const kinds = new Set(this.all.map(({ what }) => what));
		return Object.fromEntries(
			[...kinds].map((what) => [what, [...new Set(this.of(what).map(stageOf))].join()]),
		);
	}

	#wait(raw: string, ms: number, path = "/"): Promise<string> {
		return this.#call("answers to waits", "eth_sendRawTransactionSync", [raw, ms], path);
	}

	#call(
		place: string,
		method: string,
		params: readonly unknown[],
		path = "/",
		headers: Headers = {},
	): Promise<string> {
		return this.#post(place, bodyOf(method, params), path, headers);
	}

	#post(place: string, body: string, path: string, more: Headers): Promise<string> {
		const headers = { "content-type": "application/json", ...more };
		return this.#watch.fetched(place, `${this.#url}${path}`, { method: "POST", headers, body });
	}
}

function bodyOf(method: string, params: readonly unknown[]): string {
	return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
}
