// Room for requests that are answered much later: a client and its request come in, whether there is room for one more
// wait goes out. A wait holds its request, so what is bounded is their number and their bytes, of all and of each client.

import type { RequestLife } from "./requestLife.ts";

export interface WaitingRoomLimits {
	/** Waits at a time at most, of all and of one client: fewer than there may be requests, and no client has all. */
	readonly maxWaits: number;
	readonly maxPerClient: number;
	/** Bytes of the requests that are held at most, of all and of one client. */
	readonly maxBytes: number;
	readonly maxBytesPerClient: number;
}

/** Who waits. */
export interface Waiting {
	/** Whose wait it is, as limits count. */
	readonly client: string;
	/** What it came with, which is held while it waits. */
	readonly life: RequestLife;
}

/** Waits and what they hold. */
interface Held {
	waits: number;
	bytes: number;
}

/** Counts who waits; whoever was let in must be let go once. */
export class WaitingRoom {
	readonly #limits: Held;
	readonly #clientLimits: Held;
	readonly #byClient = new Map<string, Held>();
	/** Waits of each request: a batch is held once, however many of its calls wait. */
	readonly #byRequest = new Map<RequestLife, number>();
	readonly #all: Held = { waits: 0, bytes: 0 };

	constructor(limits: WaitingRoomLimits) {
		this.#limits = { waits: limits.maxWaits, bytes: limits.maxBytes };
		this.#clientLimits = { waits: limits.maxPerClient, bytes: limits.maxBytesPerClient };
	}

	/** How many wait. */
	get size(): number {
		return this.#all.waits;
	}

	/** Takes room for one more; false where there is none. */
	enter({ client, life }: Waiting): boolean {
		const held = this.#byClient.get(client) ?? { waits: 0, bytes: 0 };
		const ofRequest = this.#byRequest.get(life) ?? 0;
		const bytes = ofRequest === 0 ? life.bytes : 0;
		if (!fits(this.#all, bytes, this.#limits) || !fits(held, bytes, this.#clientLimits)) return false;
		for (const one of [held, this.#all]) {
			one.waits += 1;
			one.bytes += bytes;
		}
		this.#byClient.set(client, held);
		this.#byRequest.set(life, ofRequest + 1);
		return true;
	}

	/** Gives back what {@link enter} took. */
	leave({ client, life }: Waiting): void {
		const ofRequest = (this.#byRequest.get(life) ?? 1) - 1;
		const bytes = ofRequest === 0 ? life.bytes : 0;
		if (ofRequest === 0) this.#byRequest.delete(life);
		else this.#byRequest.set(life, ofRequest);
		const held = this.#byClient.get(client);
		for (const one of held === undefined ? [this.#all] : [held, this.#all]) {
			one.waits -= 1;
			one.bytes -= bytes;
		}
		if (held?.waits === 0) this.#byClient.delete(client);
	}
}

/** Whether one more wait that holds `bytes` more is within the limits. */
function fits(held: Readonly<Held>, bytes: number, limits: Readonly<Held>): boolean {
	return held.waits < limits.waits && held.bytes + bytes <= limits.bytes;
}
