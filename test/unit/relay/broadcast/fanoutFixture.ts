// Fake builders that keep requests and answer as the test says, fan-outs in front of them with what
// they reported, and bids to send. All fan-outs of a file are stopped after its tests.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { BUILDER_CONNECTIONS } from "../../../../relay/broadcast/builderClient.ts";
import { Fanout, type FanoutDependencies } from "../../../../relay/broadcast/fanout.ts";
import { type BuilderRow, parseBuilders } from "../../../../relay/domain/builder.ts";
import type { BundleKind, OutgoingBundle } from "../../../../relay/domain/bundle.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { signHash } from "../../../../shared/ethereum/signatures.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { privateTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";

const KEY = testAccount(42).keyHex;
export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A fan-out, and a line for each delivery: builder, kind, answer. */
export interface FanoutFixture {
	readonly fanout: Fanout;
	readonly noted: readonly string[];
}

/**
 * Starts fan-outs and builders that end with the file's tests. Call it once, at the top of the
 * file.
 */
export function fanoutFixtures() {
	const builders: FakeBuilder[] = [];
	const fanouts: Fanout[] = [];
	after(async () => {
		for (const builder of builders) builder.release();
		await Promise.all(fanouts.map((fanout) => fanout.close()));
		await Promise.all(builders.map((builder) => builder.close()));
	});
	const startBuilder = async (): Promise<FakeBuilder> => {
		const builder = await startFakeBuilder();
		builders.push(builder);
		return builder;
	};
	const fixture = (
		rows: readonly BuilderRow[],
		options: { key?: string; capacity?: number; work?: FanoutDependencies["work"] } = {},
	): FanoutFixture => {
		const noted: string[] = [];
		const fanout = new Fanout(
			{ builders: rows, signingKey: options.key ?? KEY, laneCapacity: options.capacity ?? 100 },
			{
				delivered: () => {},
				...{ clock: systemClock, log: silentLogger, maySend: () => true },
				work: options.work ?? { sign: signHash },
				onDelivery: (builder, kind, answer) => noted.push(`${builder} ${kind} ${answer}`),
			},
		);
		fanouts.push(fanout);
		return { fanout, noted };
	};
	/**
	 * The builder "b", whose connections are all taken by other clients' transactions until `finish`.
	 */
	const busy = async (capacity = 100) => {
		const builder = await startBuilder();
		builder.answerWith(null);
		const { fanout, noted } = fixture([builder.row("b")], { capacity });
		for (let i = 0; i < BUILDER_CONNECTIONS; i += 1) {
			fanout.send(
				dispatch(privateTransaction({ by: testAccount(20 + i), submitterAddress: `10.0.0.${i}` })),
				["b"],
			);
		}
		await until("all its connections", () => builder.held === BUILDER_CONNECTIONS);
		/**
		 * Answers everything; resolves with the bodies that came behind those that took the
		 * connections.
		 */
		const finish = async (): Promise<string[]> => {
			builder.release();
			await until("an empty lane", () => fanout.depth === 0);
			return builder.seen.slice(BUILDER_CONNECTIONS).map(({ body }) => body.toString());
		};
		return { fanout, builder, noted, finish };
	};
	return { startBuilder, fixture, busy };
}

/** A transaction for a block. */
export function dispatch(transaction = privateTransaction(), block = 101) {
	return { transaction, block, lastBlock: 125 };
}

/** The target of the bids. */
export const TARGET = privateTransaction();
export const REFUND = { percent: 90, recipient: testAccount(9).address, bodyIdx: 0, of: null };

/** A bid on TARGET; `nonce` tells one backrun from another. */
export function bid(
	name: string,
	options: { nonce?: number; block?: number; refund?: null; client?: string; kind?: BundleKind } = {},
): OutgoingBundle {
	const { client = "192.0.2.1", kind = "bid" } = options;
	const backrun = signedTransaction({ by: testAccount(8), nonce: options.nonce ?? 0 });
	return {
		name,
		transactions: [
			{ tx: TARGET.tx, mayRevert: true, mayDrop: false },
			{ tx: backrun, mayRevert: false, mayDrop: true },
		],
		...{ block: options.block ?? 101, times: null },
		refund: options.refund === undefined ? REFUND : options.refund,
		...{ client, requestId: null, kind },
	};
}

/** The nonces of the {@link bid}s in `bodies`, in their order. */
export function nonces(bodies: readonly string[], upTo = 10): number[] {
	const raws = Array.from({ length: upTo }, (_, nonce) =>
		signedTransaction({ by: testAccount(8), nonce }).raw.toString("hex"),
	);
	return bodies.map((body) => raws.findIndex((raw) => body.includes(raw))).filter((found) => found >= 0);
}

/** The requests that the builder has received, once there are `count`. */
export function seen(builder: FakeBuilder, count: number): Promise<readonly SeenRequest[]> {
	return until(`${count} requests`, () => builder.seen.length >= count && builder.seen);
}

/** The methods that the builder was called by. */
export function methods(builder: FakeBuilder): readonly string[] {
	return builder.seen.map(({ call }) => call.method);
}

/** The identifier of a bundle or of its cancel. */
export function uuidIn(builder: FakeBuilder, index: number): unknown {
	const params = builder.seen[index]?.call.params ?? [];
	return (params[0] as { replacementUuid?: unknown } | undefined)?.replacementUuid;
}

export interface SeenRequest {
	readonly body: Buffer;
	readonly signature: string;
	readonly contentType: string;
	/** The body as JSON. */
	readonly call: { readonly id: unknown; readonly method: string; readonly params: readonly unknown[] };
}

export interface FakeBuilder {
	readonly url: string;
	readonly seen: readonly SeenRequest[];
	/** Requests that wait for their answer. */
	readonly held: number;
	/** From now on: what it answers, or null to hold what comes. */
	answerWith(answer: { status: number; text: string } | null): void;
	/** Answers what it holds, and from now on everything. */
	release(): void;
	/** The row of BUILDERS for it. */
	row(name: string, options?: Partial<BuilderRow>): BuilderRow;
	close(): Promise<void>;
}

const ACCEPTED = { status: 200, text: '{"jsonrpc":"2.0","id":1,"result":null}' };

/** A builder that accepts everything, listening on this machine. */
export async function startFakeBuilder(): Promise<FakeBuilder> {
	const seen: SeenRequest[] = [];
	const held: ServerResponse[] = [];
	let answer: { status: number; text: string } | null = ACCEPTED;
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			const body = Buffer.concat(chunks);
			const { "x-flashbots-signature": signature, "content-type": contentType } = request.headers;
			const call = JSON.parse(body.toString("utf8"));
			seen.push({ body, signature: String(signature), contentType: String(contentType), call });
			if (answer === null) held.push(response);
			else response.writeHead(answer.status).end(answer.text);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const url = `http://127.0.0.1:${port}`;
	return {
		url,
		seen,
		get held() {
			return held.length;
		},
		answerWith(next) {
			answer = next;
		},
		release() {
			answer = ACCEPTED;
			for (const response of held.splice(0)) response.writeHead(ACCEPTED.status).end(ACCEPTED.text);
		},
		row(name, options) {
			const parsed = parseBuilders([{ name, url, ...options }]);
			if (!parsed.ok || parsed.rows[0] === undefined) throw new Error("not a row");
			return parsed.rows[0];
		},
		close() {
			server.closeAllConnections();
			return new Promise((resolve) => server.close(() => resolve()));
		},
	};
}
