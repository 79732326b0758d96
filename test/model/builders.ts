// Compares the requests to builders with the model: reads each builder's record, and reports what
// is missing and what they should not have received. The next block is the chain's head plus one.

import type { BuilderInput } from "../../relay/domain/builder.ts";
import type { RecordedRequest } from "../devnet/builderRecord.ts";
import type { DevBuilder } from "../devnet/devBuilder.ts";
import type { ControlModel, ModelTx } from "./model.ts";

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
	readonly #cancels = new Map<string, { readonly seq: number; readonly form: string }[]>();
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
	cancels(hash: string): readonly { readonly seq: number; readonly form: string }[] {
		return this.#cancels.get(hash) ?? [];
	}

	/** The forms of cancel that this builder must get for what it was last sent as `kind`. */
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
		const cancelled = (hash: string | undefined, form: string): void => {
			if (hash !== undefined) push(this.#cancels, hash, { seq, form });
		};
		if (method === "eth_sendBundle" && Array.isArray(txs)) {
			if (txs.length > 0) sent(txs[0], blockNumber);
			else cancelled(this.#uuids.get(uuid), "empty");
		} else if (method === "mev_sendBundle" && Array.isArray(body)) {
			sent(fields(body[0]).tx, fields(inclusion).block);
		} else if (method === "eth_cancelBundle") cancelled(this.#uuids.get(uuid), "endpoint");
		else if (method === "eth_cancelPrivateTransaction") cancelled(String(txHash), "private");
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

/** By builder: the last request it had got at a moment. */
export type Moment = ReadonlyMap<string, number>;

export class SendRules {
	readonly #watches: readonly BuilderWatch[];
	readonly #mayHide: (builder: string) => boolean;
	/** When a transaction was taken anew: what came before is of an earlier life. */
	readonly #taken = new Map<string, Moment>();
	/** Anything sent before does not count as sent for the next block. */
	#since: Moment = new Map();
	/** As that, for private transactions. */
	#moved: Moment = new Map();
	/** The beginning of the step under way. */
	#begun: Moment = new Map();
	#wantedBefore: ReadonlySet<string> = new Set();
	/** From when on nothing of a transaction may be sent. */
	readonly #quiet = new Map<string, Moment>();

	/** `mayHide`: whether a builder may have transactions of /fullprivacy. */
	constructor(watches: readonly BuilderWatch[], mayHide: (builder: string) => boolean) {
		this.#watches = watches;
		this.#mayHide = mayHide;
	}

	/** Reads what builders have got; the moment behind that. */
	now(): Moment {
		for (const watch of this.#watches) watch.read();
		return new Map(this.#watches.map((watch) => [watch.name, watch.seq]));
	}

	/** A step begins: the moment, and who may be sent what by the model as it is before. */
	begin(model: ControlModel): Moment {
		this.#begun = this.now();
		this.#wantedBefore = this.#wanted(model);
		return this.#begun;
	}

	/**
	 * The head has another number than at `before`: private transactions too are sent again for each.
	 */
	moved(before: Moment): void {
		this.#moved = before;
	}

	/** The relay forgot what it has sent: it sends what is pending again. */
	restarted(): void {
		this.#since = this.now();
	}

	/** Takes down what ended and what came back since `before`. */
	note(model: ControlModel, before: Moment): void {
		for (const tx of model.all()) {
			if (tx.end !== null && !this.#quiet.has(tx.hash)) this.#quiet.set(tx.hash, before);
			if (tx.end === null && this.#quiet.delete(tx.hash)) this.#taken.set(tx.hash, before);
		}
	}

	/** Everything that is still missing. */
	lacks(model: ControlModel): readonly string[] {
		return [...this.#books(model), ...model.all().flatMap((tx) => this.#missingCancels(tx))];
	}

	/**
	 * Sends that must never be. `inFlight`: the step had several parts, between which more may have
	 * been sent than at its ends.
	 */
	violations(model: ControlModel, inFlight: boolean): readonly string[] {
		const wanted = this.#wanted(model);
		const all = model.all();
		const astray = inFlight ? [] : all.flatMap((tx) => this.#sentAstray(model, tx, wanted));
		return [...all.flatMap((tx) => this.#sentLate(tx)), ...astray];
	}

	/** Sends of a transaction that had ended. */
	#sentLate(tx: ModelTx): readonly string[] {
		const quiet = this.#quiet.get(tx.hash);
		if (quiet === undefined) return [];
		return this.#watches.flatMap((watch) => {
			const sent = watch.sent(tx.hash).filter(({ seq }) => seq > (quiet.get(watch.name) ?? 0));
			return sent.map(
				({ seq }) => `${tx.hash} was ${tx.end} and then sent to ${watch.name} (request ${seq})`,
			);
		});
	}

	/**
	 * Sends in this step of a transaction that waits, is held, or is not for that builder, both
	 * before the step and after it.
	 */
	#sentAstray(model: ControlModel, tx: ModelTx, wanted: ReadonlySet<string>): readonly string[] {
		if (tx.end !== null || model.mined(tx) !== undefined) return [];
		return this.#watches.flatMap((watch) => {
			const key = `${watch.name} ${tx.hash}`;
			if (wanted.has(key) || this.#wantedBefore.has(key)) return [];
			const begun = this.#begun.get(watch.name) ?? 0;
			const isSent = watch.sent(tx.hash).some(({ seq }) => seq > begun);
			return isSent ? [`${tx.hash} was sent to ${watch.name}, though it is ${model.stage(tx)}`] : [];
		});
	}

	/** Which builder wants which transaction for the next block, as `name hash`. */
	#wanted(model: ControlModel): ReadonlySet<string> {
		const out = model.all().filter(({ now }) => now === "send" || now === "sendPrivately");
		const names = (tx: ModelTx) =>
			this.#watches.filter(({ name }) => tx.now === "send" || this.#mayHide(name));
		return new Set(out.flatMap((tx) => names(tx).map(({ name }) => `${name} ${tx.hash}`)));
	}

	/** Whether the first builder would put it into the next block, by all that it was sent. */
	mayBeBuilt(model: ControlModel, tx: ModelTx): boolean {
		const [builds] = this.#watches;
		return builds !== undefined && this.#mayHold(model, tx, builds);
	}

	/**
	 * Differences between the transactions that builders have and those that the model wants them to
	 * have.
	 */
	#books(model: ControlModel): readonly string[] {
		const block = model.chain.head + 1;
		const all = this.#wanted(model);
		return this.#watches.flatMap((watch) => {
			const held = watch.holds(block);
			return model.all().flatMap((tx) => {
				if (model.mined(tx) !== undefined) return [];
				const wanted = all.has(`${watch.name} ${tx.hash}`);
				const moved = tx.path === "nochecks" ? (this.#moved.get(watch.name) ?? 0) : 0;
				const since = Math.max(this.#since.get(watch.name) ?? 0, moved);
				const isHeld = held.has(tx.hash) && watch.sent(tx.hash).some(({ seq }) => seq > since);
				if (wanted && !isHeld) return [`${watch.name} lacks ${tx.hash} for block ${block}`];
				if (!held.has(tx.hash) || wanted || this.#mayHold(model, tx, watch)) return [];
				return [`${watch.name} holds ${tx.hash} for block ${block}, which is ${model.stage(tx)}`];
			});
		});
	}

	/**
	 * Whether a builder may still have a transaction that is no longer sent: it was sent for this
	 * very block, or privately, and to stop sending withdraws nothing. A transaction that has ended,
	 * or fails now, is withdrawn if the builder supports that.
	 */
	#mayHold(model: ControlModel, tx: ModelTx, watch: BuilderWatch): boolean {
		if ((tx.end !== null || tx.now === "hold") && watch.cancel !== "none") return false;
		return watch.sent(tx.hash).some(({ block }) => block === null || block === model.chain.head + 1);
	}

	/**
	 * Cancels that are missing: builders that were sent a transaction and, once it had ended, not all
	 * forms of its cancel.
	 */
	#missingCancels(tx: ModelTx): readonly string[] {
		const taken = this.#taken.get(tx.hash);
		if (tx.end === null) return [];
		return this.#watches.flatMap((watch) => {
			const last = watch.sent(tx.hash).findLast(({ seq }) => seq > (taken?.get(watch.name) ?? 0));
			if (last === undefined) return [];
			// A bundle names its block: what expired lapses by itself.
			if (last.block !== null && tx.expired) return [];
			const cancels = watch.cancels(tx.hash).filter(({ seq }) => seq > last.seq);
			const forms = watch.formsFor(last.block === null ? "private" : "bundle");
			const missing = forms.filter((form) => !cancels.some((one) => one.form === form));
			return missing.map((form) => `${watch.name} was sent no cancel of ${tx.hash} (${form})`);
		});
	}
}
