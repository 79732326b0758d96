// Keeps events, and waits for the first that matches, past or to come.

import { systemClock, withDeadline } from "../../../shared/clock.ts";

/** Keeps all news; the demo is short. */
export class Heard<News> {
	readonly #news: News[] = [];
	readonly #waiting = new Set<() => void>();

	/** Something new. */
	hear(news: News): void {
		this.#news.push(news);
		for (const look of [...this.#waiting]) look();
	}

	/** All of it, in order. */
	all(): readonly News[] {
		return this.#news;
	}

	/** The first that `find` makes something of. Rejects after `ms` with a DeadlineError that names `what`. */
	async first<T>(what: string, ms: number, find: (news: News) => T | null): Promise<T> {
		let look = (): void => {};
		try {
			return await withDeadline(systemClock, what, ms, () => {
				return new Promise<T>((resolve) => {
					look = () => {
						for (const news of this.#news) {
							const found = find(news);
							if (found !== null) return resolve(found);
						}
					};
					this.#waiting.add(look);
					look();
				});
			});
		} finally {
			this.#waiting.delete(look);
		}
	}
}
