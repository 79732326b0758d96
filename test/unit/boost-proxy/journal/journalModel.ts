// The journal as plainly as can be: what the words of its port mean, on maps, without a disk. It shares no code with
// the real one.

import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import type { Ending, NewRow } from "../../../../boost-proxy/domain/row.ts";
import type { EndedRow, LiveRow } from "./rowVerbs.ts";

export interface ModelLimits {
	readonly ttlMs: number;
	readonly reorgMs: number;
	readonly maxLive: number;
	readonly maxEnded: number;
}

/** Whether it is under way follows from the rest. */
type ModelEntry = Omit<LiveRow, "underWay"> & { readonly said: boolean };

interface Known {
	open: ModelEntry | null;
	ended: (EndedRow & { readonly was: ModelEntry | null }) | null;
}

const BY_USER: readonly Ending[] = ["cancelled", "replaced"];

export class JournalModel {
	readonly #limits: ModelLimits;
	known: Map<string, Known>;
	/** By hash: the requests under way beside the one that brought it. A start knows of none. */
	readonly #requests = new Map<string, number>();

	constructor(limits: ModelLimits, known = new Map<string, Known>()) {
		this.#limits = limits;
		this.known = known;
	}

	of(hash: string): Known {
		return this.known.get(hash) ?? { open: null, ended: null };
	}

	/** As the port has it. */
	openOf(hash: string): LiveRow | null {
		const { open } = this.of(hash);
		return open === null ? null : { ...open, underWay: !open.said || this.#requestsOf(hash) > 0 };
	}

	get opens(): readonly LiveRow[] {
		return [...this.known.keys()].flatMap((hash) => this.openOf(hash) ?? []);
	}

	/** What can still be opened again, the first to end first. */
	get mined(): readonly string[] {
		const ended = [...this.known.values()].flatMap((known) => known.ended ?? []);
		return ended
			.filter(({ was }) => was !== null)
			.sort((a, b) => a.endedAt - b.endedAt)
			.map(({ hash }) => hash);
	}

	copy(): Map<string, Known> {
		return structuredClone(this.known);
	}

	/** As after a start: nobody's request is under way, and what was not told is acknowledged. */
	restart(): void {
		this.#requests.clear();
		for (const known of this.known.values()) {
			if (known.open !== null) known.open = { ...known.open, said: true };
			this.#saidOfMined(known);
		}
	}

	/** No more ends than begins count, and none of what is not known. */
	setUnderWay(hash: string, underWay: boolean): void {
		if (!this.known.has(hash)) return;
		this.#requests.set(hash, Math.max(0, this.#requestsOf(hash) + (underWay ? 1 : -1)));
	}

	add({ raw, ...entry }: NewRow, holder: UpstreamName): boolean {
		const { open } = this.of(entry.hash);
		if (open?.acknowledged ?? this.#isFull(entry.address)) return false;
		const aliveUntil = entry.receivedAt + this.#limits.ttlMs;
		const holders = union(open?.holders ?? [], [holder]);
		const replacesAt = union(open?.replacesAt ?? [], entry.replacesAt);
		const kept = {
			...entry,
			bytes: raw.length,
			replacesAt,
			holders,
			acknowledged: true,
			aliveUntil,
			said: false,
		};
		this.known.set(entry.hash, { open: kept, ended: null });
		return true;
	}

	/** One client has a sixteenth at most. */
	#isFull(address: string): boolean {
		const { maxLive } = this.#limits;
		const own = this.opens.filter((one) => one.address === address);
		return this.opens.length >= maxLive || own.length >= Math.ceil(maxLive / 16);
	}

	change(hash: string, change: (entry: ModelEntry) => Partial<ModelEntry>): void {
		const known = this.of(hash);
		if (known.open !== null) known.open = { ...known.open, ...change(known.open) };
	}

	held(hash: string, by: UpstreamName): void {
		this.change(hash, ({ holders }) => ({ holders: union(holders, [by]) }));
		const { open, ended } = this.of(hash);
		if (open === null && ended !== null && BY_USER.includes(ended.ending))
			this.end(hash, ended.ending, [by], 0);
	}

	notHeld(hash: string, by: UpstreamName): void {
		const held = this.of(hash).open?.holders.includes(by);
		this.change(hash, ({ holders }) => ({ holders: holders.filter((one) => one !== by) }));
		const { open } = this.of(hash);
		if (held && open?.holders.length === 0 && !open.acknowledged) this.forget(hash);
	}

	settle(hash: string, acknowledged: boolean): void {
		const known = this.of(hash);
		if (known.open === null) {
			this.#saidOfMined(known);
			return;
		}
		const { open } = known;
		if (open.said && open.acknowledged) return;
		if (!acknowledged && open.holders.length === 0) this.forget(hash);
		else known.open = { ...open, acknowledged, said: true };
	}

	end(hash: string, ending: Ending, untold: readonly UpstreamName[], now: number): void {
		const { open, ended } = this.of(hash);
		if (open !== null) {
			const { from, nonce, path, address } = open;
			const was = ending === "mined" ? open : null;
			this.#ends({ hash, from, nonce, path, address, ending, endedAt: now, untold: union([], untold), was });
		} else if (ended !== null) {
			const isOther = ["expired", "dropped"].includes(ended.ending) && ending !== ended.ending;
			const later = isOther ? { ending, endedAt: now } : {};
			this.#ends({ ...ended, untold: union(ended.untold, untold), ...later });
		}
	}

	markEnded(mark: Omit<EndedRow, "endedAt">, now: number): void {
		const { open, ended } = this.of(mark.hash);
		if (open !== null || ended !== null) this.end(mark.hash, mark.ending, mark.untold, now);
		else this.#ends({ ...mark, endedAt: now, was: null });
	}

	told(hash: string, by: UpstreamName): void {
		const known = this.of(hash);
		if (known.ended === null) return;
		known.ended = { ...known.ended, untold: known.ended.untold.filter((one) => one !== by) };
	}

	reopen(hash: string, now: number): void {
		const { ended } = this.of(hash);
		if (ended === null || ended.was === null || now - ended.endedAt > this.#limits.reorgMs) return;
		const open = { ...ended.was, aliveUntil: now + this.#limits.ttlMs };
		this.known.set(hash, { open, ended: null });
	}

	/** Nothing is known of it any more. */
	forget(hash: string): void {
		this.known.delete(hash);
		this.#requests.delete(hash);
	}

	/** The request that brought it may end after it: it is not under way when it is opened again. */
	#saidOfMined(known: Known): void {
		const was = known.ended?.was ?? null;
		if (known.ended !== null && was !== null) known.ended = { ...known.ended, was: { ...was, said: true } };
	}

	#requestsOf(hash: string): number {
		return this.#requests.get(hash) ?? 0;
	}

	#ends(ended: NonNullable<Known["ended"]>): void {
		this.known.set(ended.hash, { open: null, ended });
		const all = [...this.known.values()].flatMap((known) => known.ended ?? []);
		if (all.length <= this.#limits.maxEnded) return;
		const rank = (one: EndedRow) => (BY_USER.includes(one.ending) ? 1 : 0);
		const [out] = all.sort((a, b) => rank(a) - rank(b) || a.endedAt - b.endedAt);
		if (out !== undefined) this.forget(out.hash);
	}
}

function union<T>(some: readonly T[], more: readonly T[]): readonly T[] {
	return [...new Set([...some, ...more])];
}
