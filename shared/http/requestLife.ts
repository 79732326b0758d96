// How long a request lasts: its size comes in, and word that its client has gone; who works for it hears of that.

/** A request or message that a call came with, until it is answered. */
export interface RequestLife {
	/** Of its body. They are held until it is answered. */
	readonly bytes: number;
	/** Calls `listener` once, when its client has gone and nobody hears the answer; at once where he already has. */
	onGone(listener: () => void): void;
}

/** The life of one request; whoever owns the connection ends it. */
export class ClientLife implements RequestLife {
	readonly bytes: number;
	#listeners: (() => void)[] = [];
	#gone = false;

	constructor(bytes: number) {
		this.bytes = bytes;
	}

	onGone(listener: () => void): void {
		if (this.#gone) listener();
		else this.#listeners.push(listener);
	}

	/** The client has gone, or was answered: then nobody listens any more. */
	end(): void {
		this.#gone = true;
		for (const listener of this.#listeners.splice(0)) listener();
	}
}
