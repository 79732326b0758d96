// Relay and fallback as boost's own HTTP client reaches them: real servers that answer as a test
// says, breakers that it opens, and a tap on all requests as they are made. A fixture's clock goes
// on when all of them have their ends.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LookupFunction } from "node:net";
import { dialectOf } from "../../../boost-proxy/dialects/dialects.ts";
import type { DialectName } from "../../../boost-proxy/domain/ports.ts";
import { UPSTREAMS, type UpstreamName, type WireVerdict } from "../../../boost-proxy/domain/request.ts";
import { UpstreamBreaker } from "../../../boost-proxy/health/breaker.ts";
import { HttpTransport } from "../../../boost-proxy/upstream/transport.ts";
import { HttpUpstream, type UpstreamOptions } from "../../../boost-proxy/upstream/upstream.ts";
import { type Clock, nextTurn } from "../../../shared/clock.ts";
import type { RpcCall } from "../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../shared/log.ts";
import { NO_TRACES } from "../../../shared/tracing/traces.ts";
import { BREAKER_OPTIONS } from "../../support/breakerFixture.ts";
import type { ManualClock } from "../../support/manualClock.ts";
import { httpText, RawUpstream } from "../../support/upstreams.ts";

/**
 * An upstream's response to a request: a result, an error or an HTTP answer. "keeps" is its
 * default. "breaks off" closes the connection, so it is unknown whether it has the transaction.
 * "hangs" does not even close it. "refuses" accepts no connection, so that no byte is sent.
 */
export type Said =
	| { readonly result: unknown }
	| { readonly error: WireVerdict }
	| { readonly http: string; readonly headers?: readonly string[] }
	| "keeps"
	| "breaks off"
	| "hangs"
	| "refuses";

/** A call that has left for an upstream. */
export interface Left extends RpcCall {
	/** Path and query. */
	readonly target: string;
	/** Names in lower case; those that a client's request has too are left out. */
	readonly headers: Readonly<Record<string, string>>;
	/** The hash of the transaction that is sent, or that the call is about. */
	readonly hash: string;
	readonly id: unknown;
	readonly body: string;
}

type Script = (of: Left) => Said | Promise<Said>;

/** BOOST_SECRET of boost and its relay. */
const SECRET = "shared by relay and boost";
const TYPE = ["content-type: application/json", "connection: close"];
const SEND = "eth_sendRawTransaction";
/**
 * Turns of the event loop in which a script of a test's own ends, unless that waits for the test,
 * and a connection is there.
 */
const TURNS = 50;

/** An error as it is answered. */
export function refusal(message: string, code = -32000): Said {
	return { error: { code, message } };
}

/**
 * The server's side of one upstream. By default it keeps all that it receives, and executes
 * cancels.
 */
export class FarSide {
	readonly name: UpstreamName;
	/** Stages by hash; it has no record of others. */
	readonly stages = new Map<string, string>();
	/** Status pages by hash. */
	readonly pages = new Map<string, unknown>();
	readonly pagesAsked: string[] = [];
	/** All that has left for it, also what it has refused. */
	readonly left: Left[] = [];
	/** The bodies that have arrived. */
	readonly arrived: string[] = [];
	/** The responses to a submission, and to another call. */
	onSubmission: Script = () => "keeps";
	onCall: Script = () => "keeps";
	readonly #hashOf: (raw: string) => string;
	/** The prepared responses to requests that have not arrived, call by call. */
	readonly #said = new Map<object, Answering>();
	#refuses = false;
	#server: RawUpstream | null = null;

	constructor(name: UpstreamName, hashOf: (raw: string) => string) {
		this.name = name;
		this.#hashOf = hashOf;
	}

	async start(): Promise<this> {
		this.#server = await RawUpstream.start(({ socket }, text) => {
			const [, verb, target = ""] = /^(\w+) (\S+)/.exec(text) ?? [];
			if (verb === "GET") return void socket.end(this.#page(target));
			const body = text.slice(text.indexOf("\r\n\r\n") + 4);
			this.arrived.push(body);
			const [request = null, made] = [...this.#said].find(([, { calls }]) => calls[0]?.body === body) ?? [];
			// Its client has cut it off meanwhile.
			if (request === null || made === undefined) return void socket.destroy();
			this.#said.delete(request);
			void Promise.all(made.said).then((said) => {
				const answers = said.map((one, i) => (one === "keeps" ? this.#own(made.calls[i] as Left) : one));
				if (answers.includes("breaks off")) socket.destroy();
				else if (!answers.includes("hangs")) socket.end(textOf(answers, made.calls, body.startsWith("[")));
			});
		});
		return this;
	}

	get url(): string {
		return `http://${this.name}.test:${this.#server?.port}`;
	}

	/** Hashes of what was sent to it, refused and lost ones too. */
	get hashes(): readonly string[] {
		return this.submissions.map(({ hash }) => hash);
	}

	get submissions(): readonly Left[] {
		return this.left.filter(({ method }) => method === SEND);
	}

	get calls(): readonly Left[] {
		return this.left.filter(({ method }) => method !== SEND);
	}

	/** The first parameter of each call of `method`. */
	asked(method: string): readonly unknown[] {
		return this.left.flatMap((one) => (one.method === method ? [one.params[0]] : []));
	}

	/** Its address; none where the request that is being made is refused. */
	readonly lookup: LookupFunction = (_name, { all }, callback) => {
		const refuses = this.#refuses;
		this.#refuses = false;
		if (refuses) callback(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }), "");
		else if (all === true) callback(null, [{ address: "127.0.0.1", family: 4 }]);
		else callback(null, "127.0.0.1", 4);
	};

	/** A request is being made, whose connection is looked up in the same turn. */
	made(request: Made): Answering {
		const calls = this.#read(request);
		this.left.push(...calls);
		const said = calls.map((call) => (call.method === SEND ? this.onSubmission(call) : this.onCall(call)));
		this.#refuses = said.includes("refuses");
		if (!this.#refuses) this.#said.set(request, { calls, said });
		return { calls, said };
	}

	/** A request has its end, whether or not it has arrived. */
	ended(request: object): void {
		this.#said.delete(request);
	}

	/** Waits for the ends of its connections, when nothing leaves for it any more. */
	async quiet(): Promise<void> {
		for (let turn = 0; turn < TURNS || this.#server?.peers.some(({ closed }) => !closed) === true; turn += 1)
			await nextTurn();
	}

	/** Forgets everything. */
	reset(): void {
		this.stages.clear();
		this.left.length = 0;
		this.arrived.length = 0;
	}

	async stop(): Promise<void> {
		await this.#server?.close();
	}

	#read({ path: target, body: bytes, headers: lines }: Made): readonly Left[] {
		const body = String(bytes);
		const headers: Record<string, string> = {};
		for (let i = 0; i < lines.length; i += 2) headers[String(lines[i]).toLowerCase()] = String(lines[i + 1]);
		for (const usual of USUAL) delete headers[usual];
		return ([JSON.parse(body)].flat() as readonly (RpcCall & { id: unknown })[]).map(
			({ method, params, id }) => {
				const hash = method === SEND ? this.#hashOf(String(params[0])) : String(params[0]);
				return { method, params, target, headers, hash, id, body };
			},
		);
	}

	#page(target: string): string {
		const hash = target.slice(target.lastIndexOf("/") + 1);
		this.pagesAsked.push(hash);
		const page = this.pages.get(hash);
		return page === undefined
			? httpText("{}", "404 Not Found", TYPE)
			: httpText(JSON.stringify(page), "200 OK", TYPE);
	}

	#own({ method, params, hash }: Left): Said {
		const stage = this.stages.get(hash);
		switch (method) {
			case SEND:
				if (stage === undefined || stage === "EXPIRED" || stage === "DROPPED")
					this.stages.set(hash, "BROADCAST");
				return { result: hash };
			case "eth_cancelTransaction":
				if (stage !== "BROADCAST") return refusal("transaction not found or no longer pending");
				this.stages.set(hash, "CANCELLED");
				return { result: true };
			case "eth_getTransactionByHash":
				return { result: stage === undefined ? null : { hash } };
			case "service_transactionStatuses": {
				const [hashes] = params as readonly [readonly string[]];
				const record = (one: string) => ({
					hash: one,
					status: "UNKNOWN",
					stage: this.stages.get(one) ?? null,
				});
				return { result: hashes.map(record) };
			}
			default:
				throw new Error(`${method} is not asked for`);
		}
	}
}

/** The headers that each of our requests has. */
const USUAL = ["content-type", "user-agent", "accept-encoding", "accept"];

/** The calls of one request, and an upstream's responses to them. */
interface Answering {
	readonly calls: readonly Left[];
	readonly said: readonly ReturnType<Script>[];
}

/** As bytes. */
function textOf(answers: readonly Said[], calls: readonly Left[], isArray: boolean): string {
	for (const one of answers)
		if (typeof one === "object" && "http" in one)
			return httpText("", one.http, [...TYPE, ...(one.headers ?? [])]);
	const bodies = answers.map((one, i) => ({ jsonrpc: "2.0", id: calls[i]?.id, ...(one as object) }));
	return httpText(JSON.stringify(isArray ? bodies : bodies[0]), "200 OK", TYPE);
}

type NearOptions = Partial<UpstreamOptions> & { readonly connections?: number };

/** Boost's side of one upstream, with a breaker that only a test opens and closes. */
export class NearSide extends HttpUpstream {
	/** How its attempts ended, as the breaker counts them. */
	readonly outcomes: string[];
	readonly #breaker: UpstreamBreaker;
	readonly #transport: HttpTransport;

	constructor(
		far: FarSide,
		dialect: DialectName | null,
		clock: Clock,
		{ connections = 256, ...options }: NearOptions = {},
	) {
		const outcomes: string[] = [];
		const transport = new HttpTransport({ url: far.url, connections }, { clock, lookup: far.lookup });
		const breaker = new UpstreamBreaker(
			{ ...BREAKER_OPTIONS, upstream: far.name },
			{
				...{ clock, log: silentLogger, alternative: null },
				...{ probe: async () => "ok" as const, onTrip() {}, onProbe() {} },
			},
		);
		breaker.force("closed");
		const path = { transport, asIs: false };
		const transports = { fast: path, noreverts: path };
		super(
			{ name: far.name, boostSecret: SECRET, unfitPaths: { fast: null, noreverts: null }, ...options },
			{
				breaker,
				clock,
				transports,
				readTransports: transports,
				statusTransport: transport,
				readyBlobs: null,
				traces: NO_TRACES,
				onAttempt: ({ outcome }) => outcomes.push(outcome),
				// Flashbots has its pages elsewhere.
				dialect: dialect === null ? null : dialectOf(dialect, { hasStatusUrl: dialect === "flashbots" }),
			},
		);
		this.outcomes = outcomes;
		this.#breaker = breaker;
		this.#transport = transport;
	}

	get isOut(): boolean {
		return this.#breaker.isUnavailable;
	}

	set isOut(isOut: boolean) {
		this.#breaker.force(isOut ? "open" : "closed");
	}

	/** Cuts off requests under way. Nothing leaves after that. */
	async end(): Promise<void> {
		await this.#transport.close();
		await this.#breaker.stop();
	}
}

/** A request as undici makes it, for any caller. */
interface Made {
	readonly origin: string;
	readonly method: string;
	readonly path: string;
	readonly headers: readonly string[];
	readonly body: Buffer;
}

const MADE = "undici:request:create";
const ENDS = ["undici:request:trailers", "undici:request:error"];

/** All requests that leave this process for some servers by undici. */
export class Tap {
	readonly #far: readonly FarSide[];
	readonly #onLeft: (call: Left, to: UpstreamName) => void;
	/** Those that have no end yet; true: it is not waited for. */
	readonly #pending = new Map<object, boolean>();

	/** `onLeft` is called while a request is made, before anything else can change. */
	constructor(far: readonly FarSide[], onLeft: (call: Left, to: UpstreamName) => void = () => {}) {
		this.#far = far;
		this.#onLeft = onLeft;
		subscribe(MADE, this.#made);
		for (const end of ENDS) subscribe(end, this.#ended);
	}

	/** Waits for the ends of all requests, and for what follows from them. */
	async settled(): Promise<void> {
		for (let turn = 0; ; turn += 1) {
			await nextTurn();
			const pending = [...this.#pending.values()];
			if (pending.length === 0 || (turn > TURNS && pending.every(Boolean))) break;
		}
		await nextTurn();
	}

	close(): void {
		unsubscribe(MADE, this.#made);
		for (const end of ENDS) unsubscribe(end, this.#ended);
	}

	readonly #made = (message: unknown): void => {
		const { request } = message as { readonly request: Made };
		const far = this.#far.find(({ url }) => url === request.origin);
		if (far === undefined) return;
		this.#pending.set(request, false);
		if (request.method === "GET") return;
		const { calls, said } = far.made(request);
		const isFree = said.some((one) => one === "hangs" || one instanceof Promise);
		this.#pending.set(request, isFree);
		for (const call of calls) this.#onLeft(call, far.name);
	};

	readonly #ended = (message: unknown): void => {
		const { request } = message as { readonly request: object };
		this.#pending.delete(request);
		for (const far of this.#far) far.ended(request);
	};
}

/** Both servers' sides by their names. */
export function bothFar(hashOf: (raw: string) => string): Readonly<Record<UpstreamName, FarSide>> {
	const [relay, fallback] = UPSTREAMS.map((name) => new FarSide(name, hashOf)) as [FarSide, FarSide];
	return { relay, fallback };
}

/** Both sides of one upstream. */
export class PlayedUpstream extends FarSide {
	#near: NearSide | null = null;

	async plug(...[dialect, clock, options]: Plug): Promise<void> {
		await this.start();
		this.#near = new NearSide(this, dialect, clock, options);
	}

	/** The side that boost's parts use. */
	get near(): NearSide {
		if (this.#near === null) throw new Error("it is not plugged in");
		return this.#near;
	}

	get isOut(): boolean {
		return this.near.isOut;
	}

	set isOut(isOut: boolean) {
		this.near.isOut = isOut;
	}
}

type Plug = readonly [dialect: DialectName | null, clock: Clock, options?: Partial<UpstreamOptions>];

/** Relay and fallback for one test, whose clock waits for them. `end` must be called. */
export async function playUpstreams(options: {
	readonly hashOf: (raw: string) => string;
	readonly clock: ManualClock;
	readonly dialect: DialectName;
	/** By path, the reason why the fallback may not get its transactions; null: it may. */
	readonly unfitPaths?: UpstreamOptions["unfitPaths"];
}) {
	const { hashOf, clock, dialect, unfitPaths } = options;
	const relay = new PlayedUpstream("relay", hashOf);
	const fallback = new PlayedUpstream("fallback", hashOf);
	await relay.plug(null, clock);
	await fallback.plug(dialect, clock, unfitPaths === undefined ? {} : { unfitPaths });
	const tap = new Tap([relay, fallback]);
	clock.settled = () => tap.settled();
	const end = async (): Promise<void> => {
		await Promise.all([relay.near.end(), fallback.near.end()]);
		await Promise.all([relay.stop(), fallback.stop()]);
		tap.close();
	};
	return { relay, fallback, tap, end };
}
