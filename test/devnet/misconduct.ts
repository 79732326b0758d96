// Builders that break their promises, to show that the relay's operator sees it. Each misconduct is
// an order book that keeps other orders than its builder was sent.

import { type NewOrder, type Order, OrderBook } from "./orderBook.ts";

/** The promises that a dev builder may break. */
export const MISCONDUCTS = [
	/** It publishes what it receives, at the chain's node. */
	"leaks",
	/** It leaves out the backruns. */
	"strips",
	/** It pays half of each refund. */
	"halfRefunds",
	/** It confirms cancels, and keeps the orders. */
	"ignoresCancels",
] as const;
export type Misconduct = (typeof MISCONDUCTS)[number];

/** The book of a builder; `publish` sends a raw transaction to the public mempool. */
export function bookOf(misconduct: Misconduct | undefined, publish: (raw: string) => void): OrderBook {
	return misconduct === undefined ? new OrderBook() : new DishonestBook(misconduct, publish);
}

class DishonestBook extends OrderBook {
	readonly #misconduct: Misconduct;
	readonly #publish: (raw: string) => void;

	constructor(misconduct: Misconduct, publish: (raw: string) => void) {
		super();
		this.#misconduct = misconduct;
		this.#publish = publish;
	}

	override add(order: NewOrder) {
		// One that needs another to be valid would be in nobody's mempool.
		const [first, ...others] = order.transactions;
		if (this.#misconduct === "leaks" && first !== undefined && others.length === 0) this.#publish(first.raw);
		if (this.#misconduct !== "halfRefunds") return super.add(order);
		const refunds = order.refunds.map((one) => ({ ...one, millionths: one.millionths / 2n }));
		return super.add({ ...order, refunds });
	}

	override cancelUuid(signer: string | null, uuid: string): number | null {
		return this.#misconduct === "ignoresCancels" ? null : super.cancelUuid(signer, uuid);
	}

	override cancelTransaction(signer: string | null, hash: string): number | null {
		return this.#misconduct === "ignoresCancels" ? null : super.cancelTransaction(signer, hash);
	}

	override liveFor(next: number, gone: ReadonlySet<string>): Order[] {
		const live = super.liveFor(next, gone);
		return this.#misconduct === "strips" ? live.filter(({ refunds }) => refunds.length === 0) : live;
	}
}

/** The setting BUILDER_MISCONDUCT. Throws for a value that it does not have. */
export function misconductOf(env: Readonly<Record<string, string | undefined>>): Misconduct | undefined {
	const text = env.BUILDER_MISCONDUCT?.trim() ?? "";
	const found = MISCONDUCTS.find((name) => name === text);
	if (text === "" || found !== undefined) return found;
	throw new Error(
		`BUILDER_MISCONDUCT is not valid: expected one of ${MISCONDUCTS.join(", ")}, for example BUILDER_MISCONDUCT=leaks`,
	);
}
