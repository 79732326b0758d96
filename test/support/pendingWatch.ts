// Watches the pending nonces of some accounts while a test runs, and fails when the relay reports one that is
// impossible. For accounts that begin at nonce 0.

import assert from "node:assert/strict";
import { until } from "./until.ts";

/** Accounts that are asked for at a time while something goes on. */
const SOME = 5;
const DEADLINE_MS = 30_000;
/** Between two looks, however long it goes on: what is wrong may be so for a moment only. */
const LOOK_MS = 10;

/** A nonce may count once it was sent, and must from its answer on. */
export class PendingWatch {
	readonly #url: string;
	readonly #addresses: readonly string[];
	readonly #sent = new Map<string, Set<number>>();
	readonly #answered = new Map<string, Set<number>>();
	#turn = 0;
	/** How often the relay was asked. */
	looks = 0;

	/** `url`: the relay's; `addresses` in lower case. */
	constructor(url: string, addresses: readonly string[]) {
		this.#url = url;
		this.#addresses = addresses;
		for (const address of addresses) {
			this.#sent.set(address, new Set());
			this.#answered.set(address, new Set());
		}
	}

	/** To be called before `nonce` leaves. */
	sent(address: string, nonce: number): void {
		this.#sent.get(address)?.add(nonce);
	}

	/** To be called when it was answered with its hash. */
	answered(address: string, nonce: number): void {
		this.#answered.get(address)?.add(nonce);
	}

	/** Looks at some accounts after the others until `work` is done, then at all of them; answers its outcome. */
	async watch<T>(work: Promise<T>): Promise<T> {
		let over = false;
		const done = work.finally(() => {
			over = true;
		});
		const looking = until(
			"the end of what is watched",
			async () => {
				if (!over) await this.#look(this.#next());
				return over;
			},
			DEADLINE_MS,
			LOOK_MS,
		);
		const [outcome] = await Promise.all([done, looking]);
		await this.#look(this.#addresses);
		return outcome;
	}

	#next(): readonly string[] {
		const from = this.#turn;
		this.#turn = from + SOME >= this.#addresses.length ? 0 : from + SOME;
		return this.#addresses.slice(from, from + SOME);
	}

	async #look(addresses: readonly string[]): Promise<void> {
		const least = addresses.map((address) => gapless(this.#answered.get(address)));
		const method = "eth_getTransactionCount";
		const calls = addresses.map((of, id) => ({ jsonrpc: "2.0", id, method, params: [of, "pending"] }));
		const response = await fetch(this.#url, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify(calls),
		});
		const answers = (await response.json()) as { id: number; result?: unknown; error?: unknown }[];
		const most = addresses.map((address) => gapless(this.#sent.get(address)));
		assert.equal(answers.length, addresses.length);
		for (const { id, result, error } of answers) {
			const [told, low = NaN, high = NaN] = [Number(result ?? NaN), least[id], most[id]];
			const what = `pending nonce ${JSON.stringify(error ?? told)} of ${addresses[id]}`;
			assert.ok(low <= told && told <= high, `${what}, not ${low} to ${high}`);
		}
		this.looks += 1;
	}
}

/** How many of the nonces follow one another from 0 on. */
function gapless(nonces: ReadonlySet<number> = new Set()): number {
	let next = 0;
	while (nonces.has(next)) next += 1;
	return next;
}
