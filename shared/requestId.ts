// The id of a request, `X-Request-Id`: the sender's own if it is valid, else a random one. It
// appears in the answer and in the log lines of the request and of its transaction. It is also
// forwarded to the servers that the request is sent to.

import { randomFillSync } from "node:crypto";

/** In lower case, as Node gives headers. */
export const REQUEST_ID = "x-request-id";

/** Only characters that a log, a header or a shell reads as plain text. */
const VALID = /^[A-Za-z0-9._-]{1,64}$/;
/**
 * Random bytes of an id: enough that no two are equal by chance, and that an id does not reveal how
 * many there are.
 */
const ID_BYTES = 12;
/**
 * Ids for which random bytes are fetched at once, since each call takes longer than everything else
 * here.
 */
const IDS_AT_ONCE = 256;
/** Characters of a websocket's id. The number of a message follows it. */
const CONNECTION_CHARS = 48;

const random = Buffer.alloc(ID_BYTES * IDS_AT_ONCE);
let used = random.length;

/** A random id of 24 hex digits. */
export function newRequestId(): string {
	if (used === random.length) {
		randomFillSync(random);
		used = 0;
	}
	used += ID_BYTES;
	return random.toString("hex", used - ID_BYTES, used);
}

/**
 * The id in a request's header. A new id if the header is absent or not 1 to 64 characters of `A-Z
 * a-z 0-9 . _ -`.
 */
export function requestIdOf(header: string | readonly string[] | undefined): string {
	return typeof header === "string" && VALID.test(header) ? header : newRequestId();
}

/**
 * The ids of a websocket's messages: the id of its upgrade, cut to 48 characters, and the number of
 * the message.
 */
export class MessageIds {
	readonly #connection: string;
	#count = 0;

	constructor(upgradeId: string) {
		this.#connection = upgradeId.slice(0, CONNECTION_CHARS);
	}

	next(): string {
		this.#count += 1;
		return `${this.#connection}.${this.#count}`;
	}
}
