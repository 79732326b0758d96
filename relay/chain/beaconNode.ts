// Follows a consensus node's `payload_attributes` events. They announce the next block's
// PREVRANDAO, the root of its parent beacon block and its time. Simulations use these values.
// Missing or unusable values are random in simulations, as for everybody without a consensus node.
// https://ethereum.github.io/beacon-APIs/#/Events/eventstream

import type { LookupFunction } from "node:net";
import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { reconnect } from "../../shared/link/reconnect.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { advice, EVENT_STREAM } from "../../shared/outgoing/advice.ts";
import { encodingsOf, firstOf } from "../../shared/outgoing/headers.ts";
import { HttpClient, type HttpHead, symptomOf } from "../../shared/outgoing/httpClient.ts";
import type { PayloadAttributes } from "../domain/chain.ts";
import { fieldsOf, readHash } from "../domain/nodeJson.ts";
import { EventStreamReader, type StreamEvent } from "./eventStream.ts";

export interface BeaconNodeOptions {
	/** http(s) address; path, query and credentials in it are kept and never printed. */
	readonly url: string;
	readonly slot: SlotLength;
}

export interface BeaconNodeDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	/** Called after the attributes for a parent have become known, or changed. */
	readonly onAttributes: () => void;
	/** 0 to 1, to vary the pause before the next try; Math.random unless given. */
	readonly random?: () => number;
}

const TOPIC = "payload_attributes";
/** Time to the first bytes of the answer, in ms. */
const OPEN_MS = 10_000;
/**
 * How long a stream may be silent before it is opened again: at least this many slots and this many
 * ms. Nodes send comments or each slot's event.
 */
const SILENT_SLOTS = 4;
const MIN_SILENCE_MS = 60_000;
/** An event with sixteen withdrawals is 3 KB. */
const MAX_EVENT_CHARS = 64 * 1024;
/** Parents whose attributes are kept: the node may be ahead of the relay, and go back. */
const KEPT = 16;
/** Heads in a row without attributes before the operator is warned. */
const MISSED_HEADS = 3;
const SETTING = "BEACON_URL";
const UNUSABLE = "consensus node unusable: simulations have a random PREVRANDAO and beacon root";

/** Reads one event stream at a time, and remembers its attributes of the last heads. */
export class BeaconNode implements Component {
	readonly name = "beacon node";
	readonly #options: BeaconNodeOptions;
	readonly #dependencies: BeaconNodeDependencies;
	readonly #http: HttpClient;
	readonly #stopping = new AbortController();
	#running: Promise<void> = Promise.resolve();
	/** By the parent's hash, oldest first. */
	readonly #known = new Map<string, PayloadAttributes>();
	#head: string | null = null;
	#missed = 0;
	#isOpen = false;
	/** Whether this stream has delivered usable attributes. */
	#hasPublished = false;
	/**
	 * The last logged reason why the node can't be used. Null: it can be used. "": nothing is
	 * logged yet.
	 */
	#loggedProblem: string | null = "";

	constructor(options: BeaconNodeOptions, dependencies: BeaconNodeDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#http = new HttpClient({ url: options.url, connections: 1 }, dependencies);
	}

	/**
	 * The attributes of the block on top of the block with this hash; null if no usable ones were
	 * published.
	 */
	attributesAfter(hash: string): PayloadAttributes | null {
		return this.#known.get(hash) ?? null;
	}

	/** Sets the relay's head to the block with this hash. */
	headCame(hash: string): void {
		const isMissing = this.#head !== null && !this.#known.has(this.#head);
		this.#missed = isMissing ? this.#missed + 1 : 0;
		this.#head = hash;
		if (this.#known.has(hash)) this.#tellWell();
		else if (this.#isOpen && this.#missed >= MISSED_HEADS) {
			const hint = `it publishes nothing of this chain's next slots: is ${SETTING} a node of this chain that is in sync and publishes ${TOPIC} for each slot?`;
			this.#tellProblem(hint, { hint });
		}
	}

	/** Starts to follow the node, without waiting for it. */
	async start(): Promise<void> {
		const { clock, random = Math.random } = this.#dependencies;
		this.#running = reconnect(() => this.#follow(), this.#stopping.signal, { clock, random });
	}

	/** Closes the connection, and resolves when it is closed. */
	async stop(): Promise<void> {
		this.#stopping.abort();
		await this.#http.close();
		await this.#running;
	}

	/** Reads one stream to its end. Resolves to whether it has delivered attributes. */
	async #follow(): Promise<boolean> {
		const fault = await this.#readStream();
		this.#isOpen = false;
		if (!this.#hasPublished && !this.#stopping.signal.aborted) this.#tellFault(fault);
		return this.#hasPublished;
	}

	/** Reads one stream to its end, and returns why it ended. */
	async #readStream(): Promise<UpstreamError> {
		const reader = new EventStreamReader({ maxChars: MAX_EVENT_CHARS });
		this.#hasPublished = false;
		const result = await this.#http.request({
			method: "GET",
			target: `/eth/v1/events?topics=${TOPIC}`,
			headers: { accept: "text/event-stream" },
			body: null,
			deadlineMs: OPEN_MS,
			stream: {
				accepts: (head) => {
					this.#isOpen = isEventStream(head);
					return this.#isOpen;
				},
				onBytes: (bytes) => {
					for (const event of reader.push(bytes)) this.#read(event);
				},
				silenceMs: Math.max(MIN_SILENCE_MS, SILENT_SLOTS * this.#options.slot.ms),
			},
		});
		const { host } = this.#http;
		if (result.kind === "aborted") return new UpstreamError("unreachable", {}, host, result.sent);
		if (result.kind === "answered" && this.#isOpen) return new UpstreamError("unreachable", {}, host);
		if (result.kind === "answered") {
			const [encoding] = encodingsIn(result);
			return new UpstreamError("httpStatus", { ...symptomOf(result), encoding }, host);
		}
		const { fault, reason, sent } = result;
		return new UpstreamError(fault === "timeout" ? fault : "unreachable", { reason }, host, sent);
	}

	#read({ name, data }: StreamEvent): void {
		const attributes = name === TOPIC ? readAttributes(data) : null;
		if (attributes === null) return;
		const { parentHash, timestamp } = attributes;
		const known = this.#known.get(parentHash);
		// For the same parent, only the attributes of a later slot are new: the slot before it has
		// passed without a block.
		if (known !== undefined && timestamp <= known.timestamp) return;
		this.#hasPublished = true;
		this.#known.delete(parentHash);
		this.#known.set(parentHash, attributes);
		const [oldest] = this.#known.keys();
		if (this.#known.size > KEPT && oldest !== undefined) this.#known.delete(oldest);
		if (parentHash === this.#head) this.#tellWell();
		this.#dependencies.onAttributes();
	}

	#tellFault(error: UpstreamError): void {
		const hint = advice(SETTING, error.symptom, EVENT_STREAM);
		const fault = safeError(error);
		this.#tellProblem(JSON.stringify(fault), { fault, ...(hint === null ? {} : { hint }) });
	}

	/** Logs a problem once, until another one comes or it is over. */
	#tellProblem(problem: string, fields: Parameters<Logger["warn"]>[1]): void {
		if (this.#loggedProblem === problem) return;
		this.#loggedProblem = problem;
		this.#dependencies.log.warn(UNUSABLE, fields);
	}

	#tellWell(): void {
		if (this.#loggedProblem === null) return;
		const isFirst = this.#loggedProblem === "";
		this.#loggedProblem = null;
		this.#dependencies.log.info(
			`reading PREVRANDAO and the beacon root of the next slot from the consensus node${isFirst ? "" : " again"}`,
		);
	}
}

function isEventStream(head: HttpHead): boolean {
	const type = firstOf(head.headers["content-type"]) ?? "";
	return head.status === 200 && encodingsIn(head).length === 0 && /^\s*text\/event-stream\b/i.test(type);
}

function encodingsIn({ headers }: HttpHead): readonly string[] {
	return encodingsOf(firstOf(headers["content-encoding"]));
}

/**
 * The attributes in the data of a `payload_attributes` event; null if they are malformed. Their fee
 * recipient is the operator's own or none, so it is not the builders' coinbase.
 */
export function readAttributes(data: string): PayloadAttributes | null {
	let event: unknown;
	try {
		event = JSON.parse(data);
	} catch {
		return null;
	}
	const { parent_block_hash, payload_attributes } = fieldsOf(fieldsOf(event)?.data) ?? {};
	const { timestamp, prev_randao, parent_beacon_block_root } = fieldsOf(payload_attributes) ?? {};
	const [parentHash, prevRandao, beaconRoot] = [parent_block_hash, prev_randao, parent_beacon_block_root].map(
		readHash,
	);
	// Integers are decimals in quotation marks.
	if (typeof timestamp !== "string" || !/^\d{1,15}$/.test(timestamp)) return null;
	if (!parentHash || !prevRandao || !beaconRoot) return null;
	return { parentHash, timestamp: Number(timestamp), prevRandao, beaconRoot };
}
