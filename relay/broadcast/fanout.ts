// The fan-out to the builders: what comes in is a transaction and the builders that may have it, what goes out are
// signed calls in each builder's lane, and events of how they were taken. Who may have what is decided elsewhere.

import { createHash } from "node:crypto";
import type { Clock } from "../../shared/clock.ts";
import { type BodySigner, createBodySigner } from "../../shared/ethereum/flashbotsSignature.ts";
import { keccak256 } from "../../shared/ethereum/keccak.ts";
import type { BuilderRow } from "../domain/builder.ts";
import { type EndpointPolicy, policyOf } from "../domain/endpoints.ts";
import type { DeliveryAnswer, DeliveryKind } from "../domain/events.ts";
import type { Broadcaster, Dispatch, EventSink } from "../domain/ports.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import { BUILDER_CONNECTIONS, BuilderClient } from "./builderClient.ts";
import type { BuilderCall } from "./dialects/dialect.ts";
import { DIALECTS } from "./dialects/index.ts";
import { Lane } from "./lane.ts";

export interface FanoutOptions {
	readonly builders: readonly BuilderRow[];
	/** Private key (0x hex) that requests are signed with. */
	readonly signingKey: string;
	/** Items that may wait for one builder. */
	readonly laneCapacity: number;
}

interface Builder {
	readonly row: BuilderRow;
	readonly client: BuilderClient;
	readonly lane: Lane;
}

/** Told of every delivery, for metrics and readiness. */
export type DeliveryListener = (
	builder: string,
	kind: DeliveryKind,
	answer: DeliveryAnswer,
	ms: number,
) => void;

/** The builders and their lanes. */
export class Fanout implements Broadcaster {
	readonly #builders: ReadonlyMap<string, Builder>;
	readonly #eligible: Readonly<Record<EndpointPolicy["builders"], readonly string[]>>;
	readonly #key: string;
	readonly #signer: BodySigner;
	readonly #events: EventSink;
	readonly #clock: Clock;
	readonly #onDelivery: DeliveryListener;

	constructor(
		options: FanoutOptions,
		dependencies: { events: EventSink; clock: Clock; onDelivery: DeliveryListener },
	) {
		const marked = options.builders.filter((row) => row.fullPrivacy);
		const trusted = marked.length > 0 ? marked : options.builders.slice(0, 1);
		this.#eligible = {
			all: options.builders.map((row) => row.name),
			fullPrivacy: trusted.map((row) => row.name),
		};
		this.#key = options.signingKey;
		this.#signer = createBodySigner(options.signingKey);
		this.#events = dependencies.events;
		this.#clock = dependencies.clock;
		this.#onDelivery = dependencies.onDelivery;
		this.#builders = new Map(
			options.builders.map((row) => {
				const client = new BuilderClient(row, dependencies);
				const lane = new Lane(
					{ capacity: options.laneCapacity, concurrency: BUILDER_CONNECTIONS },
					{ send: (body, signature) => client.send(body, signature), clock: dependencies.clock },
				);
				return [row.name, { row, client, lane }];
			}),
		);
	}

	eligible(transaction: PrivateTransaction): readonly string[] {
		return this.#eligible[policyOf(transaction.path).builders];
	}

	send(dispatch: Dispatch, builders: readonly string[]): void {
		const { transaction, block } = dispatch;
		const kind = policyOf(transaction.path).form;
		// Private transactions go out under their hash alone.
		const uuid = kind === "bundle" ? this.#uuid(transaction) : "";
		const signed = this.#signOnce(builders.length);
		for (const { row, lane } of this.#chosen(builders)) {
			lane.push({
				key: transaction.tx.from,
				subject: transaction.tx.hash,
				block,
				urgent: false,
				make: () => signed(DIALECTS[row.dialect].send(row, dispatch, uuid)),
				answered: (answer, ms) => this.#answered(transaction, row.name, kind, block, answer, ms),
			});
		}
	}

	cancel(transaction: PrivateTransaction, builders: readonly string[], block: number): void {
		const cancellation = { transaction, uuid: this.#uuid(transaction), block };
		const signed = this.#signOnce(builders.length);
		for (const { row, lane } of this.#chosen(builders)) {
			lane.withdraw(transaction.tx.from, transaction.tx.hash);
			for (const call of DIALECTS[row.dialect].cancel(row, cancellation)) {
				lane.push({
					key: transaction.tx.from,
					subject: transaction.tx.hash,
					block,
					urgent: true,
					make: () => signed(call),
					answered: (answer, ms) => this.#answered(transaction, row.name, "cancel", block, answer, ms),
				});
			}
		}
	}

	/** What waits for `head` or a block before it is no longer sent. */
	setHead(head: number): void {
		for (const { lane } of this.#builders.values()) lane.setHead(head);
	}

	/** Items in all lanes, for metrics. */
	get depth(): number {
		let depth = 0;
		for (const { lane } of this.#builders.values()) depth += lane.depth;
		return depth;
	}

	/** Ends the lanes: what is under way is finished, what waits is dropped (it is in the store). */
	async close(): Promise<void> {
		const builders = [...this.#builders.values()];
		await Promise.all(builders.map(({ lane }) => lane.close()));
		await Promise.all(builders.map(({ client }) => client.close()));
	}

	#chosen(names: readonly string[]): Builder[] {
		return names.flatMap((name) => this.#builders.get(name) ?? []);
	}

	/** Builders of one dialect get the same bytes, which are signed once. */
	#signOnce(builders: number): (call: BuilderCall) => { body: Buffer; signature: string } {
		// By digest: the bodies themselves would be kept until the slowest builder has taken its own.
		const made = new Map<string, string>();
		return (call) => {
			const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, ...call }));
			if (builders === 1) return { body, signature: this.#signer.sign(body) };
			const digest = createHash("sha256").update(body).digest("base64");
			const signature = made.get(digest) ?? this.#signer.sign(body);
			made.set(digest, signature);
			return { body, signature };
		};
	}

	/**
	 * The identifier of a transaction's bundle: a UUIDv4 (RFC 9562) made from the hash and our key, so that it is
	 * the same after a restart and can't be guessed from the hash, which searchers may know.
	 */
	#uuid(transaction: PrivateTransaction): string {
		const bytes = Buffer.from(keccak256(Buffer.from(`target ${transaction.tx.hash} ${this.#key}`))).subarray(
			0,
			16,
		);
		bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
		bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
		const hex = bytes.toString("hex");
		return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
	}

	#answered(
		transaction: PrivateTransaction,
		builder: string,
		kind: DeliveryKind,
		block: number,
		answer: DeliveryAnswer,
		ms: number,
	): void {
		this.#onDelivery(builder, kind, answer, ms);
		const at = this.#clock.now();
		this.#events.emit(transaction.tx.hash, { type: "delivered", at, block, builder, kind, answer, ms });
	}
}
