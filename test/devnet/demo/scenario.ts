// What the demo's parts share: lines for what it does and claims, of which the first that does not hold stops it; the
// events that it has heard; waiting until there is an answer; and stopping all that was started, the last one first.

import { formatEther } from "ethers";
import { pause, systemClock, withDeadline } from "../../../shared/clock.ts";

/** A text in a colour, where colours are used. */
export type Paint = (text: string, style: "cyan" | "green" | "red") => string;

/** A claim did not hold; its line has been told. */
export class ScenarioBroken extends Error {
	constructor(claim: string) {
		super(`it does not hold that ${claim}`);
		this.name = "ScenarioBroken";
	}
}

/** Tells the demo, line by line. */
export class Scenario {
	readonly #print: (line: string) => void;
	readonly #paint: Paint;
	#claims = 0;

	constructor(print: (line: string) => void, paint: Paint) {
		this.#print = print;
		this.#paint = paint;
	}

	/** How many claims have held so far. */
	get claims(): number {
		return this.#claims;
	}

	/** A heading. */
	chapter(text: string): void {
		this.#print(`\n${this.#paint(text, "cyan")}`);
	}

	/** Something that was done, or is so. */
	tell(text: string): void {
		this.#print(`       ${text}`);
	}

	/** A claim. Throws {@link ScenarioBroken} where it does not hold; `found` is told then, to say what is the case. */
	claim(text: string, holds: boolean, found = ""): void {
		this.#print(`  ${this.#mark(holds)} ${text}`);
		if (!holds && found !== "") this.#print(`       found: ${found}`);
		if (!holds) throw new ScenarioBroken(text);
		this.#claims += 1;
	}

	/** The scenario could not go on. */
	broken(thrown: unknown): void {
		const text = thrown instanceof Error ? thrown.message : "something that is no error was thrown";
		this.#print(`  ${this.#mark(false)} ${text}`);
	}

	#mark(holds: boolean): string {
		return holds ? this.#paint("ok  ", "green") : this.#paint("FAIL", "red");
	}

	/** That two amounts of wei are the same. */
	same(text: string, is: bigint, shouldBe: bigint): void {
		this.claim(`${text}: ${amount(shouldBe)}`, is === shouldBe, amount(is));
	}
}

/** Wei and ETH. */
export function amount(wei: bigint): string {
	return `${wei} wei (${formatEther(wei)} ETH)`;
}

/** Beyond this nothing is waited for. */
export const STEP_MS = 15_000;

/** Asks until there is an answer. */
export async function until<T>(what: string, question: () => Promise<T | null>): Promise<T> {
	const end = systemClock.monotonic() + STEP_MS;
	for (;;) {
		const answer = await question();
		if (answer !== null) return answer;
		if (systemClock.monotonic() > end) throw new Error(`waited ${STEP_MS} ms in vain for ${what}`);
		await pause(systemClock, 20);
	}
}

/** Thrown into what goes on starting things after the end. */
export class AlreadyStopping extends Error {
	constructor() {
		super("it is being stopped");
		this.name = "AlreadyStopping";
	}
}

/** Everything that has to be stopped. */
export class Stops {
	readonly #stops: (() => Promise<void>)[] = [];
	#stopping: Promise<void> | undefined;

	/** True from the first call of {@link all} on. */
	get begun(): boolean {
		return this.#stopping !== undefined;
	}

	/** To be called as soon as something runs. Where the end has begun, it is stopped at once, and this throws. */
	add(stop: () => Promise<void>): void {
		this.#stops.push(stop);
		if (!this.begun) return;
		stop().catch(() => {});
		throw new AlreadyStopping();
	}

	/** Stops all of it. What fails to stop keeps nothing else from it. */
	all(): Promise<void> {
		this.#stopping ??= this.#stopThem();
		return this.#stopping;
	}

	async #stopThem(): Promise<void> {
		for (const stop of [...this.#stops].reverse()) await stop().catch(() => {});
	}
}

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
