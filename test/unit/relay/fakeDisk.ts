// An in-memory disk for tests of the stages, whose writes finish or fail when the test says so.

import type { KeyValueStore } from "../../../shared/kv/port.ts";

/** A store in memory whose writes can be held back and can fail. */
export class FakeDisk implements KeyValueStore {
	readonly map = new Map<string, Buffer>();
	#held: ((ok: boolean) => void)[] = [];
	/** From now on: writes wait for {@link finish}. */
	hold = false;
	/** From now on: writes fail. */
	broken = false;

	get = (key: string) => Promise.resolve(this.map.get(key) ?? null);

	async *range(start: string, end: string, limit = Number.POSITIVE_INFINITY) {
		const keys = [...this.map.keys()].filter((key) => key >= start && key < end).sort();
		for (const key of keys.slice(0, limit)) yield [key, this.map.get(key) ?? Buffer.alloc(0)] as const;
	}

	async write(changes: Parameters<KeyValueStore["write"]>[0]): Promise<void> {
		if (changes.length === 0) return;
		const ok = this.hold ? await new Promise<boolean>((resolve) => this.#held.push(resolve)) : !this.broken;
		if (!ok) throw new Error("disk");
		for (const { key, value } of changes) {
			if (value === null) this.map.delete(key);
			else this.map.set(key, Buffer.from(value));
		}
	}

	/** Writes that wait. */
	get waiting(): number {
		return this.#held.length;
	}

	/** Ends the oldest `count` writes that wait. */
	finish(ok: boolean, count = this.#held.length): void {
		for (const resolve of this.#held.splice(0, count)) resolve(ok);
	}

	close = () => Promise.resolve();
}
