// Sends steady traffic of real signed transactions, as wallets do, with an occasional one that must
// be refused, and records each outcome. invariants.ts checks them.

import { type Dispatcher, Pool, request } from "undici";
import { pause, systemClock } from "../../shared/clock.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import { rawTransaction, type TestAccount } from "../support/txFactory.ts";

/** Transactions that every process must refuse. */
export const REFUSABLE = ["badRlp", "poor", "wrongChain"] as const;
export type SentKind = "sound" | (typeof REFUSABLE)[number];

/** The answer to a client. */
export type Outcome =
	| { readonly kind: "acknowledged" }
	| { readonly kind: "error"; readonly code: number; readonly message: string; readonly status: number }
	/** Nothing that could be read. */
	| { readonly kind: "nothing"; readonly why: string };

/** An answer of boost's. */
export interface Answered {
	readonly outcome: Outcome;
	/** Its headers; "" and 0 where there were none. */
	readonly upstream: string;
	readonly breaker: string;
	readonly attempts: number;
}

/** A transaction that was sent. */
export interface Sent extends Answered {
	readonly kind: SentKind;
	readonly path: string;
	readonly hash: string;
	readonly raw: string;
	readonly from: string;
	readonly nonce: number;
	/** Ms, monotonic. */
	readonly sentAt: number;
	readonly answeredAt: number;
	/** How often the client's connection broke. */
	readonly broken: number;
}

export interface TrafficOptions {
	/** The URL that it is sent to; a function is called each time. */
	readonly url: string;
	/** Transactions a second. */
	readonly rate: number;
	readonly paths: readonly string[];
	/** One in so many is one that must be refused; 0: none. */
	readonly refusedEvery: number;
	/** One in so many is a further one of an account that has sent before. */
	readonly chainEvery: number;
	/**
	 * Whether a connection that broke is made again with the same bytes, as after a SIGKILL of boost.
	 */
	readonly retries: boolean;
	/** Whether each request has a connection of its own, so that a balancer decides anew. */
	readonly isAnew?: boolean;
	/** One with money, at nonce 0; when there is none left, all are further ones. */
	readonly fresh: () => TestAccount | undefined;
	/** Without money. */
	readonly poor: TestAccount;
}

interface Draft {
	readonly kind: SentKind;
	readonly path: string;
	readonly from: string;
	readonly nonce: number;
	readonly raw: Buffer;
	/** When it was acknowledged. */
	readonly onAcknowledged: () => void;
}

/**
 * New accounts before used ones go first: on a slow machine one cell would leave none to the
 * others.
 */
const MOST_FRESH = 60;
const RETRY_MS = 20;
const RETRIES = 1_500;
const ANSWER_MS = 20_000;

/** Traffic that can be begun and ended once. */
export class Traffic {
	readonly #options: TrafficOptions;
	readonly #pool: Pool;
	readonly #sent: Sent[] = [];
	readonly #underWay = new Set<Promise<void>>();
	/** Accounts whose last transaction was acknowledged, with the next nonce. */
	readonly #used: { readonly account: TestAccount; readonly nonce: number }[] = [];
	#count = 0;
	/** New accounts so far. */
	#taken = 0;
	#over = false;
	#running: Promise<void> | null = null;

	constructor(options: TrafficOptions) {
		this.#options = options;
		const each = { connections: 256, headersTimeout: 0, bodyTimeout: 0 };
		// Without pipelining undici closes each connection after its answer.
		this.#pool = new Pool(options.url, options.isAnew === true ? { ...each, pipelining: 0 } : each);
	}

	/** Transactions that were answered so far, in the order of the answers. */
	get sent(): readonly Sent[] {
		return this.#sent;
	}

	/** Requests that wait for their answer. */
	get inFlight(): number {
		return this.#underWay.size;
	}

	start(): void {
		this.#running = this.#run();
	}

	/** Sends no more, and waits for the answers. */
	async stop(): Promise<void> {
		this.#over = true;
		await this.#running;
		await Promise.all(this.#underWay);
		await this.#pool.destroy();
	}

	async #run(): Promise<void> {
		const everyMs = 1000 / this.#options.rate;
		let due = systemClock.monotonic();
		while (!this.#over) {
			// Sends that a busy machine has missed are not made up for: that would be a burst.
			due = Math.max(due + everyMs, systemClock.monotonic() - everyMs);
			const early = due - systemClock.monotonic();
			if (early > 0) await pause(systemClock, early);
			const draft = this.#draft();
			if (draft === null) continue;
			const sending = this.#send(draft).finally(() => this.#underWay.delete(sending));
			this.#underWay.add(sending);
		}
	}

	/** The next one; null where every account waits for an answer. */
	#draft(): Draft | null {
		const { paths, refusedEvery, chainEvery, poor, fresh } = this.#options;
		this.#count += 1;
		const path = paths[this.#count % paths.length] ?? "/fast";
		const isEvery = (every: number, shift: number) => every > 0 && this.#count % every === shift % every;
		if (isEvery(refusedEvery, 3)) {
			const kind = REFUSABLE[Math.floor(this.#count / refusedEvery) % REFUSABLE.length] ?? "badRlp";
			return {
				kind,
				path,
				from: poor.address,
				nonce: 0,
				raw: refusable(kind, poor, this.#count),
				onAcknowledged() {},
			};
		}
		const early = isEvery(chainEvery, 1) || this.#taken >= MOST_FRESH ? this.#used.shift() : undefined;
		const first = early === undefined ? fresh() : undefined;
		if (first !== undefined) this.#taken += 1;
		const further = early ?? (first === undefined ? this.#used.shift() : undefined);
		const account = further?.account ?? first;
		if (account === undefined) return null;
		const nonce = further?.nonce ?? 0;
		const raw = rawTransaction({ by: account, nonce, gasLimit: 21_000, value: 1 });
		const onAcknowledged = () => void this.#used.push({ account, nonce: nonce + 1 });
		return { kind: "sound", path, from: account.address, nonce, raw, onAcknowledged };
	}

	async #send({ kind, path, from, nonce, raw, onAcknowledged }: Draft): Promise<void> {
		const hash = `0x${keccak256(raw).toString("hex")}`;
		const ask = () => this.#ask(path, raw, hash);
		const sentAt = systemClock.monotonic();
		let answer = await ask();
		let broken = 0;
		while (answer.outcome.kind === "nothing" && this.#options.retries && broken < RETRIES) {
			broken += 1;
			await pause(systemClock, RETRY_MS);
			answer = await ask();
		}
		const answeredAt = systemClock.monotonic();
		const hex = `0x${raw.toString("hex")}`;
		this.#sent.push({ kind, path, hash, raw: hex, from, nonce, sentAt, answeredAt, ...answer, broken });
		if (answer.outcome.kind === "acknowledged") onAcknowledged();
	}

	#ask(path: string, raw: Buffer, hash: string): Promise<Answered> {
		return askBoost(this.#options.url + path, raw, hash, this.#pool);
	}
}

/** Submits `raw` to `url` and answers what came. Never rejects. */
export async function askBoost(
	url: string,
	raw: Buffer,
	hash: string,
	dispatcher?: Dispatcher,
): Promise<Answered> {
	const params = [`0x${raw.toString("hex")}`];
	try {
		const { statusCode, headers, body } = await request(url, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params }),
			signal: AbortSignal.timeout(ANSWER_MS),
			...(dispatcher === undefined ? {} : { dispatcher }),
		});
		return {
			outcome: outcomeOf(await body.text(), statusCode, hash),
			upstream: String(headers["x-boost-upstream"] ?? ""),
			breaker: String(headers["x-boost-breaker"] ?? ""),
			attempts: Number(headers["x-boost-attempts"] ?? 0),
		};
	} catch (thrown) {
		const { code, name } = thrown as { code?: unknown; name: string };
		const outcome = { kind: "nothing", why: typeof code === "string" ? code : name } as const;
		return { outcome, upstream: "", breaker: "", attempts: 0 };
	}
}

function outcomeOf(text: string, status: number, hash: string): Outcome {
	let json: { result?: unknown; error?: { code: number; message: string } };
	try {
		json = JSON.parse(text) as typeof json;
	} catch {
		return { kind: "error", code: 0, message: `no JSON: ${text.slice(0, 60)}`, status };
	}
	if (json.error !== undefined) return { kind: "error", ...json.error, status };
	if (json.result === hash) return { kind: "acknowledged" };
	return { kind: "error", code: 0, message: `not its hash: ${String(json.result)}`, status };
}

function refusable(kind: SentKind, poor: TestAccount, count: number): Buffer {
	if (kind === "badRlp") return Buffer.from(`02c0${count.toString(16).padStart(8, "0")}`, "hex");
	const gasLimit = 21_000 + count;
	return rawTransaction({ by: poor, gasLimit, value: 1, ...(kind === "wrongChain" ? { chainId: 5n } : {}) });
}

/** Sends one transaction of `by`, which has sent none before, on /fast. */
export function sendOne(by: TestAccount | undefined, url: string): Promise<Answered> {
	if (by === undefined) throw new Error("no account");
	const raw = rawTransaction({ by, gasLimit: 21_000, value: 1 });
	return askBoost(`${url}/fast`, raw, `0x${keccak256(raw).toString("hex")}`);
}
