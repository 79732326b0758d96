// Reads a builder's record as the model needs it: which transactions it was sent, what it was told to forget, and
// what it would put into the next block. It asserts nothing.

import type { BuilderInput } from "../../relay/domain/builder.ts";
import type { RecordedRequest } from "../devnet/builderRecord.ts";
import type { DevBuilder } from "../devnet/devBuilder.ts";

/** A transaction was sent. */
export interface Sent {
	/** Its place among all that the builder got. */
	readonly seq: number;
	/** Null: a private transaction, for no block in particular. */
	readonly block: number | null;
}

export class BuilderWatch {
	readonly builder: DevBuilder;
	readonly cancel: BuilderInput["cancel"];
	readonly #stranger: string;
	readonly #hashes = new Map<string, string>();
	readonly #uuids = new Map<string, string>();
	readonly #sent = new Map<string, Sent[]>();
	readonly #told = new Map<string, { readonly seq: number; readonly form: string }[]>();
	#seq: number;

	/** `stranger` is the signer whose orders are not the relay's, checksummed. */
	constructor(builder: DevBuilder, options: { cancel: BuilderInput["cancel"]; stranger: string }) {
		this.builder = builder;
		this.cancel = options.cancel;
		this.#stranger = options.stranger;
		builder.reset();
		this.#seq = builder.requests().at(-1)?.seq ?? 0;
	}

	get name(): string {
		return this.builder.name;
	}

	/** The last request that was read. */
	get seq(): number {
		return this.#seq;
	}

	/** Makes a transaction known, so that it is recognised by its bytes. */
	know(raw: string, hash: string): void {
		this.#hashes.set(raw, hash);
	}

	/** Reads what has come since. */
	read(): void {
		for (const request of this.builder.requests(({ seq }) => seq > this.#seq)) {
			this.#seq = request.seq;
			if (request.signer !== this.#stranger) this.#take(request);
		}
	}

	sent(hash: string): readonly Sent[] {
		return this.#sent.get(hash) ?? [];
	}

	/** The cancels of a transaction. */
	told(hash: string): readonly { readonly seq: number; readonly form: string }[] {
		return this.#told.get(hash) ?? [];
	}

	/** The forms in which this builder is to be told to forget what it was last sent as `kind`. */
	formsFor(kind: "bundle" | "private"): readonly string[] {
		if (this.cancel === "none") return [];
		if (kind === "private") return ["private"];
		return this.cancel === "both" ? ["endpoint", "empty"] : [this.cancel ?? "both"];
	}

	/** Hashes of what the relay has it hold for `block`. */
	holds(block: number): ReadonlySet<string> {
		const held = new Set<string>();
		for (const { state, signer, firstBlock, lastBlock, transactions } of this.builder.orders()) {
			if (state !== "live" || signer === this.#stranger || firstBlock > block || lastBlock < block) continue;
			for (const { hash } of transactions) held.add(hash);
		}
		return held;
	}

	#take({ method, params: [param], seq }: RecordedRequest): void {
		const { txs, body, blockNumber, inclusion, replacementUuid, txHash, tx } = fields(param);
		const uuid = String(replacementUuid);
		const sent = (raw: unknown, block: unknown): void => {
			const hash = this.#hashes.get(String(raw));
			if (hash === undefined) return;
			push(this.#sent, hash, { seq, block: block === null ? null : Number(block) });
			if (block !== null) this.#uuids.set(uuid, hash);
		};
		const told = (hash: string | undefined, form: string): void => {
			if (hash !== undefined) push(this.#told, hash, { seq, form });
		};
		if (method === "eth_sendBundle" && Array.isArray(txs)) {
			if (txs.length > 0) sent(txs[0], blockNumber);
			else told(this.#uuids.get(uuid), "empty");
		} else if (method === "mev_sendBundle" && Array.isArray(body)) {
			sent(fields(body[0]).tx, fields(inclusion).block);
		} else if (method === "eth_cancelBundle") told(this.#uuids.get(uuid), "endpoint");
		else if (method === "eth_cancelPrivateTransaction") told(String(txHash), "private");
		else sent(tx ?? param, null);
	}
}

function push<T>(map: Map<string, T[]>, key: string, item: T): void {
	const list = map.get(key);
	if (list === undefined) map.set(key, [item]);
	else list.push(item);
}

function fields(value: unknown): Record<string, unknown> {
	return typeof value === "object" && value !== null ? { ...value } : {};
}
