// Opens the journal as it was left in a key-value store. What can't be read is left where it is and told of: one bad
// record must not keep boost from the others.

import type { Clock } from "../../shared/clock.ts";
import { type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { EndedEntries } from "./endedEntries.ts";
import { Endings } from "./endings.ts";
import { identify } from "./identity.ts";
import { DiskJournal } from "./journal.ts";
import { OpenEntries } from "./openEntries.ts";
import { RecordDisk } from "./recordDisk.ts";
import { decodeBirth, decodeState, type KeptState, RECORD_KEYS, rawLength } from "./records.ts";

const MIB = 1024 * 1024;
const SLOT_MS = 12_000;

/** The journal's bounds; what is left out has the default. */
export interface JournalOptions {
	/** Life of an entry from its arrival, or the last word that it is on its way, in ms. */
	readonly ttlMs: number;
	/** Open entries at most (100 000), a sixteenth of one client; where there are that many, none is added. */
	readonly maxEntries?: number;
	/** Bytes of open entries at most (256 MiB), 512 more for each; a sixteenth of one client. */
	readonly maxBytes?: number;
	/** Bytes of transactions kept in memory beside the disk (64 MiB). */
	readonly rawCacheBytes?: number;
	/** How long ended ones are remembered, in ms (7 days). */
	readonly endedKeepMs?: number;
	/** Ended ones that are remembered (200 000); the oldest go first, those that their users ended last. */
	readonly maxEnded?: number;
	/** How long a mined one can be opened again, in ms (12 slots of mainnet). */
	readonly reorgMs?: number;
}

interface JournalDependencies {
	readonly kv: KeyValueStore;
	readonly clock: Clock;
	readonly log: Logger;
	/** Called for each write that failed. */
	readonly onFault?: () => void;
}

/** Reads everything, then answers. Throws JournalFormatError, or the store's fault. */
export async function openJournal(
	options: JournalOptions,
	dependencies: JournalDependencies,
): Promise<DiskJournal> {
	const { kv, clock, log, onFault = () => {} } = dependencies;
	const maxEntries = options.maxEntries ?? 100_000;
	const maxEnded = options.maxEnded ?? 200_000;
	const chain = await identify(kv);
	const disk = new RecordDisk(
		{ cacheBytes: options.rawCacheBytes ?? 64 * MIB, maxUnwritten: maxEntries + maxEnded },
		{ kv, clock, log, onFault },
	);
	const open = new OpenEntries({ maxEntries, maxBytes: options.maxBytes ?? 256 * MIB });
	const entries = new EndedEntries({ maxEntries: maxEnded });
	const ends: Extract<KeptState, { kind: "ended" }>[] = [];
	for (const state of await readStates(kv, log)) {
		if (state.kind === "open") open.add(state.entry);
		else ends.push(state);
	}
	for (const { ended, was } of ends.sort((a, b) => a.ended.endedAt - b.ended.endedAt)) {
		const out = entries.set(ended, was);
		// Nobody waits for it: what fails is written again.
		if (out !== null) disk.save(out, null).catch(() => {});
	}
	const keepMs = options.endedKeepMs ?? 7 * 24 * 3600 * 1000;
	const reorgMs = options.reorgMs ?? 12 * SLOT_MS;
	const endings = new Endings({ keepMs, reorgMs }, { entries, disk, clock });
	const limits = { ttlMs: options.ttlMs, maxUnwritten: 2 * maxEntries };
	return new DiskJournal(limits, { open, endings, disk, chain, clock });
}

/** The latest state of every hash. */
async function readStates(kv: KeyValueStore, log: Logger): Promise<Iterable<KeptState>> {
	const states = new Map<string, KeptState>();
	/** Lengths of transactions, by hash. */
	const born = new Map<string, number>();
	let bad = 0;
	const read = (decode: typeof decodeState, hash: string, bytes: Buffer): void => {
		try {
			states.set(hash, decode(hash, bytes));
		} catch (thrown) {
			bad += 1;
			log.error("a record of the journal can't be read", { hash, fault: safeError(thrown) });
		}
	};
	for await (const [key, bytes] of kv.range(...prefixRange(RECORD_KEYS.state))) {
		read(decodeState, key.slice(RECORD_KEYS.state.length), bytes);
	}
	for await (const [key, bytes] of kv.range(...prefixRange(RECORD_KEYS.birth))) {
		const hash = key.slice(RECORD_KEYS.birth.length);
		born.set(hash, rawLength(bytes));
		if (!states.has(hash)) read(decodeBirth, hash, bytes);
	}
	for (const [hash, state] of states) {
		const length = born.get(hash);
		if (length !== undefined) {
			const entry = state.kind === "open" ? state.entry : state.was;
			if (entry !== null) entry.bytes = length;
			continue;
		}
		// Its bytes are gone, so it can't be open, nor be opened again.
		if (state.kind === "ended") states.set(hash, { ...state, was: null });
		else {
			bad += 1;
			states.delete(hash);
			log.error("a record of the journal has no bytes", { hash });
		}
	}
	if (bad > 0) log.error("records of the journal were left out", { count: bad });
	return states.values();
}
