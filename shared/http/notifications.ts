// The messages of `eth_subscription`. All subscribers use the same texts of results, and each
// message is made when it is sent.

import type { SelectedLogs } from "../jsonrpc/logTable.ts";
import type { LaterMessages } from "./laterMessages.ts";

/** Results of a subscription, in order, as JSON. They are the same for all subscribers. */
export interface Results {
	readonly count: number;
	/** Bytes of all results together. */
	readonly bytes: number;
	readonly text: (at: number) => string;
}

export function oneResult(text: string): Results {
	return { count: 1, bytes: Buffer.byteLength(text), text: () => text };
}

export function logResults({ heads, tail, bytes }: SelectedLogs): Results {
	return { count: heads.length, bytes, text: (at) => `${heads[at]}${tail}` };
}

const HEAD = '{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"';
const MIDDLE = '","result":';
const END = "}}";

/** The notifications of one subscription. */
export class Notifications implements LaterMessages {
	readonly #head: string;
	readonly #results: Results;
	#at = 0;
	readonly bytes: number;

	constructor(id: string, results: Results) {
		this.#head = `${HEAD}${id}${MIDDLE}`;
		this.#results = results;
		this.bytes = results.bytes + results.count * (this.#head.length + END.length);
	}

	get count(): number {
		return this.#results.count - this.#at;
	}

	next(): string {
		const text = `${this.#head}${this.#results.text(this.#at)}${END}`;
		this.#at += 1;
		return text;
	}
}
