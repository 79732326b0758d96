// Sends a signed body to one builder and classifies the answer. It accepts the odd answers that real builders give,
// and drops their text.

import type { Clock } from "../../shared/clock.ts";
import { JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { BuilderRow } from "../domain/builder.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

/** How long a builder may take to answer one request, in ms: after that its block is nearly built. */
export const BUILDER_TIMEOUT_MS = 4_000;
/** Requests under way to one builder at most: public ones cut off clients that hold more than ten connections. */
export const BUILDER_CONNECTIONS = 8;
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Checks made before each attempt. */
export interface SendRights {
	/** When it is about to be written: false where it may not leave any more. */
	readonly shouldSend: () => boolean;
	/** Before it is sent a second time. */
	readonly mayRepeat: () => boolean;
}

/** Sends bodies to one builder. */
export class BuilderClient {
	readonly #client: JsonRpcClient;

	constructor(row: BuilderRow, dependencies: { clock: Clock }) {
		this.#client = new JsonRpcClient(
			{
				url: row.url,
				connections: BUILDER_CONNECTIONS,
				timeoutMs: BUILDER_TIMEOUT_MS,
				maxAnswerBytes: MAX_ANSWER_BYTES,
			},
			dependencies,
		);
	}

	/**
	 * Posts `body`, signed in X-Flashbots-Signature. Never throws. What failed as unreachable is sent a second time:
	 * a connection that the builder closed while it was idle fails like that once, and a bundle may come twice.
	 */
	async send(body: Buffer, signature: string, rights: SendRights): Promise<DeliveryAnswer> {
		const answer = await this.#post(body, signature, rights);
		if (answer !== "unreachable") return answer;
		const second = rights.mayRepeat() ? await this.#post(body, signature, rights) : answer;
		// Not `unsent`: the first attempt may have arrived.
		return second === "unreachable" || second === "unsent" ? "failed" : second;
	}

	close(): Promise<void> {
		return this.#client.close();
	}

	async #post(
		body: Buffer,
		signature: string,
		{ shouldSend }: SendRights,
	): Promise<DeliveryAnswer | "unreachable"> {
		try {
			const headers = { "x-flashbots-signature": signature };
			const { status, text } = await this.#client.exchange(body, headers, BUILDER_TIMEOUT_MS, {
				shouldSend,
			});
			return judge(status, text);
		} catch (thrown) {
			const code = thrown instanceof UpstreamError ? thrown.code : "unreachable";
			if (code === "withheld") return "unsent";
			if (code === "timeout" || code === "unreachable") return code;
			return "failed";
		}
	}
}

/**
 * How an answer counts. Builders answer `{"result":200,"error":null}`, `result:null` and plain text where they took
 * a bundle, and errors under any status; an HTML page or a 5xx without JSON is a transport failure, not an answer.
 */
export function judge(status: number, text: string): DeliveryAnswer {
	let parsed: unknown;
	try {
		parsed = JSON.parse(text);
	} catch {
		const page = /^\s*</.test(text);
		const cut = /^\s*[[{]/.test(text);
		return status >= 200 && status < 300 && !page && !cut ? "accepted" : "failed";
	}
	if (typeof parsed === "object" && parsed !== null && "error" in parsed && parsed.error) return "rejected";
	return status >= 200 && status < 300 ? "accepted" : "failed";
}
