// Reads server-sent events for tests: the answer's head, its messages, comments and end as they arrive. It reads the
// bytes itself and never reconnects: that is an EventSource's business.

import { get, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { until } from "./until.ts";

/** A message as it came. */
export interface StreamMessage {
	readonly id: string;
	readonly data: Readonly<Record<string, unknown>>;
}

/** One answer, which may go on. */
export class EventStreamReader {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	readonly messages: StreamMessage[] = [];
	/** All that came, as text. */
	text = "";
	comments = 0;
	/** In ms, as the server said. */
	retry: number | null = null;
	/** How it ended: in order, or by a broken connection. */
	ended: "end" | "cut" | null = null;
	readonly #response: IncomingMessage;
	#rest = "";

	private constructor(response: IncomingMessage) {
		this.status = response.statusCode ?? 0;
		this.headers = response.headers;
		this.#response = response;
		response.setEncoding("utf8");
		response.on("data", (text: string) => this.#read(text));
		response.on("end", () => {
			this.ended ??= "end";
		});
		response.on("error", () => {
			this.ended ??= "cut";
		});
		response.on("close", () => {
			this.ended ??= response.complete ? "end" : "cut";
		});
	}

	/** Asks for `url` as an event stream, on a connection of its own. */
	static open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<EventStreamReader> {
		return new Promise((resolve, reject) => {
			const request = get(url, { agent: false, headers: { accept: "text/event-stream", ...headers } });
			request.on("response", (response) => resolve(new EventStreamReader(response)));
			request.on("error", reject);
		});
	}

	/** Resolves once `count` messages have come. */
	async come(count: number): Promise<readonly StreamMessage[]> {
		await until(`${count} messages; there are ${this.messages.length}`, () => this.messages.length >= count);
		return this.messages;
	}

	/** The first message that `matches`, once it is there. */
	message(what: string, matches: (data: StreamMessage["data"]) => boolean): Promise<StreamMessage> {
		return until(what, () => this.messages.find(({ data }) => matches(data)));
	}

	/** How it ended. */
	over(): Promise<"end" | "cut"> {
		return until("the end of the stream", () => this.ended ?? undefined);
	}

	/** The answer's body as JSON, once it has ended. */
	async json(): Promise<unknown> {
		await this.over();
		return JSON.parse(this.text);
	}

	/** Stops reading, as a client that hangs. */
	hang(): void {
		this.#response.pause();
	}

	/** Goes away without a word. */
	leave(): void {
		this.#response.destroy();
	}

	#read(text: string): void {
		this.text += text;
		const blocks = (this.#rest + text).split("\n\n");
		this.#rest = blocks.pop() ?? "";
		for (const block of blocks) this.#take(block);
	}

	#take(block: string): void {
		const fields = new Map<string, string>();
		for (const line of block.split("\n")) {
			const colon = line.indexOf(":");
			const name = colon === -1 ? line : line.slice(0, colon);
			if (fields.has(name)) throw new Error(`${name} stands twice in ${block}`);
			fields.set(name, line.slice(colon + 1).trimStart());
		}
		if (fields.has("")) this.comments += 1;
		const retry = fields.get("retry");
		if (retry !== undefined) this.retry = Number(retry);
		const data = fields.get("data");
		if (data === undefined) return;
		for (const name of fields.keys()) {
			if (name !== "id" && name !== "data") throw new Error(`unexpected field ${name}`);
		}
		this.messages.push({ id: fields.get("id") ?? "", data: JSON.parse(data) as StreamMessage["data"] });
	}
}
