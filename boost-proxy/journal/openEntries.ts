// The open entries in memory: by hash, by sender in the order of their nonces, and what of the journal each client has.

import { clientOf } from "../../shared/http/clientIdentity.ts";
import { type Fullness, fullest, type OverShare, Shares } from "../../shared/shares/shares.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { KeptEntry } from "./records.ts";

const NONE: readonly KeptEntry[] = Object.freeze([]);

/** Bytes that an entry takes beside its transaction, about. */
const ENTRY_BYTES = 512;
/** Part of all that one client may have. */
const CLIENT_PART = 1 / 16;

/** The largest transaction without blobs (execution clients take no more). */
const LARGEST_BYTES = 128 * 1024;

interface OpenEntriesLimits {
	readonly maxEntries: number;
	readonly maxBytes: number;
}

/** An index; the lists that it hands out never change, a change makes a new one. */
export class OpenEntries {
	readonly #byHash = new Map<string, KeptEntry>();
	readonly #bySender = new Map<string, readonly KeptEntry[]>();
	readonly #entries: Shares;
	readonly #bytes: Shares;

	readonly #limits: OpenEntriesLimits;

	constructor(limits: OpenEntriesLimits) {
		const { maxEntries, maxBytes } = limits;
		this.#limits = limits;
		this.#entries = new Shares({ total: maxEntries, perClient: Math.ceil(maxEntries * CLIENT_PART) });
		this.#bytes = new Shares({ total: maxBytes, perClient: Math.ceil(maxBytes * CLIENT_PART) });
	}

	/** Whether a large transaction would find no room, whoever sends it. */
	get isFull(): boolean {
		const { maxEntries, maxBytes } = this.#limits;
		return this.#entries.taken >= maxEntries || this.#bytes.taken + LARGEST_BYTES + ENTRY_BYTES > maxBytes;
	}

	get fullness(): Fullness {
		return fullest([this.#entries.fullness, this.#bytes.fullness]);
	}

	/** What stands against one more transaction of `bytes` from `address`, or null. */
	refusal(address: string, bytes: number): OverShare | null {
		const client = clientOf(address);
		return this.#entries.refusal(client, 1) ?? this.#bytes.refusal(client, bytes + ENTRY_BYTES);
	}

	get size(): number {
		return this.#byHash.size;
	}

	get(hash: string): KeptEntry | undefined {
		return this.#byHash.get(hash);
	}

	/** By nonce, those of one nonce in the order of their arrival. */
	of(from: string): readonly KeptEntry[] {
		return this.#bySender.get(from) ?? NONE;
	}

	/** Those that are open when their turn comes. */
	*all(): Generator<KeptEntry> {
		for (const entries of this.#bySender.values()) {
			for (const entry of entries) if (this.#byHash.get(entry.hash) === entry) yield entry;
		}
	}

	/** `entry`'s hash must not be in it. Whether there is room was asked before. */
	add(entry: KeptEntry): void {
		this.#byHash.set(entry.hash, entry);
		const client = clientOf(entry.address);
		this.#entries.force(client, 1);
		this.#bytes.force(client, entry.bytes + ENTRY_BYTES);
		const entries = this.#bySender.get(entry.from);
		if (entries === undefined) {
			this.#bySender.set(entry.from, [entry]);
			return;
		}
		// From the end: most come in order.
		let at = entries.length;
		for (; at > 0; at -= 1) {
			const before = entries[at - 1];
			if (before === undefined || !isBehind(before, entry)) break;
		}
		this.#bySender.set(entry.from, entries.toSpliced(at, 0, entry));
	}

	remove(entry: KeptEntry): void {
		this.#byHash.delete(entry.hash);
		const client = clientOf(entry.address);
		this.#entries.give(client, 1);
		this.#bytes.give(client, entry.bytes + ENTRY_BYTES);
		const entries = this.of(entry.from);
		if (entries.length <= 1) this.#bySender.delete(entry.from);
		else
			this.#bySender.set(
				entry.from,
				entries.filter((one) => one !== entry),
			);
	}
}

function isBehind(one: OpenEntry, other: OpenEntry): boolean {
	return one.nonce > other.nonce || (one.nonce === other.nonce && one.receivedAt > other.receivedAt);
}
