// The fixture for views and waits: rows, two upstreams with answers by method, and a chain. All
// calls are recorded.

import assert from "node:assert/strict";
import { after } from "node:test";
import { markHeld } from "../../../../boost-proxy/domain/deliveries.ts";
import { ABSENT } from "../../../../boost-proxy/domain/deliveryState.ts";
import { onlyOwner } from "../../../../boost-proxy/domain/owners.ts";
import { type DialectName, NO_OTHERS, type Upstream } from "../../../../boost-proxy/domain/ports.ts";
import type { RequestState, UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import {
	type Ending,
	endRow,
	isLive,
	newNotes,
	openRow,
	type Row,
	shownFields,
	stripRow,
} from "../../../../boost-proxy/domain/row.ts";
import type { ViewsDependencies } from "../../../../boost-proxy/views/statusView.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import type { RpcAnswer, RpcCall } from "../../../../shared/jsonrpc/client.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { signedTransaction, type TxOptions } from "../../../support/txFactory.ts";
import { type PlayedUpstream, playUpstreams } from "../wire.ts";

/** The answer of the chain to a method: a result, an error, or null for no answer at all. */
export type Reply = (params: readonly unknown[]) => RpcAnswer | null | Promise<RpcAnswer | null>;

/** A good answer. */
export function result(value: unknown): RpcAnswer {
	return { ok: true, result: value };
}

/** A verdict. */
export function refusal(code: number, message: string): RpcAnswer {
	return { ok: false, error: { code, message } };
}

/** One upstream: answers by method, status pages by hash. */
class AnsweringUpstream {
	readonly rows = new Map<string, Reply>();
	readonly #played: PlayedUpstream;

	constructor(played: PlayedUpstream) {
		this.#played = played;
		played.onCall = async ({ method, params }) => (await this.rows.get(method)?.(params)) ?? "breaks off";
	}

	get pages(): Map<string, unknown> {
		return this.#played.pages;
	}

	/** Methods of calls, and "page" for each page, that it was asked for. */
	get asked(): readonly string[] {
		return [...this.#played.calls.map(({ method }) => method), ...this.#played.pagesAsked.map(() => "page")];
	}

	get near(): Upstream {
		return this.#played.near;
	}

	get isUnavailable(): boolean {
		return this.#played.isOut;
	}

	set isUnavailable(isOut: boolean) {
		this.#played.isOut = isOut;
	}

	/** It answers `method` with this result. */
	answers(method: string, value: unknown): this {
		this.rows.set(method, () => result(value));
		return this;
	}
}

/** Starts fixtures that end with the file's tests. Call it once, at the top of the file. */
export function viewFixtures() {
	const ends: (() => Promise<void>)[] = [];
	after(() => Promise.all(ends.map((end) => end())));
	return async (dialect: DialectName = "mevblocker"): Promise<ViewFixture> => {
		const clock = new ManualClock();
		const hashOf = () => assert.fail("views send no transactions");
		const played = await playUpstreams({ hashOf, clock, dialect });
		ends.push(played.end);
		return new ViewFixture(clock, played);
	};
}

export class ViewFixture {
	readonly clock: ManualClock;
	readonly relay: AnsweringUpstream;
	readonly fallback: AnsweringUpstream;
	/** The chain's rows by method; a missing one is answered with null results. */
	readonly chainRows = new Map<string, Reply>();
	/** False: the chain gives no answers. */
	isChainUp = true;
	readonly chainAsked: string[] = [];
	readonly learned: [string, string][] = [];
	readonly #rows = new Map<string, { readonly row: Row; readonly raw: Buffer }>();

	constructor(clock: ManualClock, played: Readonly<Record<UpstreamName, PlayedUpstream>>) {
		this.clock = clock;
		this.relay = new AnsweringUpstream(played.relay);
		this.fallback = new AnsweringUpstream(played.fallback);
	}

	readonly rows: ViewsDependencies["rows"] = {
		// Ended rows are on disk.
		findIfReadable: (hash) => {
			const row = this.#rows.get(hash)?.row ?? null;
			return row === null || isLive(row) ? row : Promise.resolve(row);
		},
		has: (hash) => this.#rows.has(hash),
		live: (hash) => {
			const row = this.#rows.get(hash)?.row;
			return row !== undefined && isLive(row) ? row : null;
		},
		rawOf: async ({ hash }) => this.#rows.get(hash)?.raw ?? null,
		liveOf: (from) =>
			[...this.#rows.values()]
				.map(({ row }) => row)
				.filter((row) => row.from === from && isLive(row))
				.sort((a, b) => Number(a.nonce - b.nonce)),
	};

	readonly chain = {
		batch: async (calls: readonly RpcCall[], deadlineMs: number): Promise<readonly RpcAnswer[] | null> => {
			if (!(deadlineMs > 0)) throw new Error("the chain without a deadline");
			this.chainAsked.push(...calls.map(({ method }) => method));
			if (!this.isChainUp) return null;
			const answers = await Promise.all(
				calls.map(({ method, params }) => this.chainRows.get(method)?.(params) ?? result(null)),
			);
			return answers.every((answer) => answer !== null) ? answers : null;
		},
	};

	/** The dependencies of views. */
	get dependencies() {
		const { rows, chain, clock, relay, fallback } = this;
		return {
			...{ rows, chain, clock, others: NO_OTHERS },
			upstreams: { relay: relay.near, fallback: fallback.near },
			observer: { learn: (hash: string, stage: string) => void this.learned.push([hash, stage]) },
			chainId: () => 31_337n,
			signatureHiding: "always" as const,
		};
	}

	/** It is live. */
	holds(
		nonce: number,
		holders: readonly UpstreamName[],
		more: Partial<Row> = {},
		options: TxOptions = {},
	): DecodedTransaction {
		const tx = signedTransaction({ nonce, ...options });
		this.#rows.set(tx.hash, { row: { ...this.#row(tx, holders), ...more }, raw: tx.raw });
		return tx;
	}

	/** It has ended. */
	ended(nonce: number, ending: Ending, more: Partial<Row> = {}): DecodedTransaction {
		const tx = signedTransaction({ nonce });
		const row = endRow({ ...this.#row(tx, []), path: "noreverts", ...more }, ending, this.clock.now());
		this.#rows.set(tx.hash, { row, raw: tx.raw });
		return tx;
	}

	/** A row that it holds ends, and is past any reorganisation. */
	ends({ hash }: DecodedTransaction, ending: Ending): void {
		const { row, raw } = this.#rows.get(hash) ?? assert.fail();
		this.#rows.set(hash, { row: stripRow(endRow(row, ending, this.clock.now())), raw });
	}

	#row(tx: DecodedTransaction, holders: readonly UpstreamName[]): Row {
		const entry = {
			...{ hash: tx.hash, from: tx.from, nonce: tx.nonce, raw: tx.raw, search: "" },
			fields: shownFields(tx),
			...{
				path: "fast" as const,
				softCancellations: false,
				address: "192.0.2.1",
				receivedAt: this.clock.now(),
				requestId: null,
				replacesAtUpstreams: [],
			},
		};
		const times = { aliveUntil: this.clock.now() + 1, notBefore: 0, notes: newNotes(this.clock.monotonic()) };
		const row = openRow({ ...entry, owners: [onlyOwner(entry)] }, null, { id: 1, version: 1, ...times });
		const known = holders.reduce<Row>((one, by) => markHeld(one, by), row);
		return { ...known, requests: 0, at: holders.length === 0 ? NOWHERE : known.at };
	}

	/** The chain has it in a block. */
	mines(tx: DecodedTransaction, status = "0x1"): void {
		const of =
			(row: unknown): Reply =>
			([hash]) =>
				result(hash === tx.hash ? row : null);
		const receipt = { transactionHash: tx.hash, blockHash: BLOCK, blockNumber: "0x9", status };
		this.chainRows.set("eth_getTransactionReceipt", of(receipt));
		this.chainRows.set("eth_getTransactionByHash", of(minedObject(tx)));
	}

	/** The state of a request with the whole budget before it. */
	state(budgetMs = 10_000): RequestState {
		const life = new ClientLife(0);
		return {
			caller: {
				address: "192.0.2.1",
				signer: null,
				origin: null,
				via: null,
				signature: null,
				requestId: null,
				life,
			},
			...{ path: "fast", target: null, search: "", until: this.clock.monotonic() + budgetMs },
			routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
		};
	}
}

const NOWHERE = { relay: ABSENT, fallback: ABSENT };
const BLOCK = `0x${"b1".repeat(32)}`;

/** A node's object of a mined transaction, signature and all. */
export function minedObject(tx: DecodedTransaction): Readonly<Record<string, unknown>> {
	const quantity = (value: bigint) => `0x${value.toString(16)}`;
	return {
		...{
			hash: tx.hash,
			from: tx.from,
			to: tx.to,
			blockHash: BLOCK,
			blockNumber: "0x9",
			transactionIndex: "0x0",
		},
		...{ gas: quantity(tx.gasLimit), nonce: quantity(tx.nonce), value: quantity(tx.value) },
		...{ gasPrice: "0x7", maxFeePerGas: "0x8", maxPriorityFeePerGas: "0x1", accessList: [], type: "0x2" },
		...{ v: "0x1", r: "0x5ec1e7", s: "0x5ec1e7", yParity: "0x1", input: "0x", chainId: "0x7a69" },
	};
}
