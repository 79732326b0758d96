// A pair of fake processes on a manual clock; what happens is recorded in order.

import { type Child, type ChildExit, runPair } from "../../../boost-proxy/supervisor.ts";
import { silentLogger } from "../../../shared/log.ts";
import { ManualClock } from "../../support/manualClock.ts";

/** A process that starts and ends when the test says so. */
export class FakeChild implements Child {
	readonly started: Promise<void>;
	readonly exited: Promise<ChildExit>;
	readonly #name: string;
	readonly #events: string[];
	start = (): void => {};
	exit = (_code: number | null, _signal: string | null = null): void => {};

	constructor(name: string, events: string[]) {
		this.#name = name;
		this.#events = events;
		events.push(`${name} begins`);
		this.started = new Promise((resolve) => {
			this.start = resolve;
		});
		this.exited = new Promise((resolve) => {
			this.exit = (code, signal = null) => {
				events.push(`${name} ends`);
				resolve({ code, signal });
			};
		});
	}

	stop(): void {
		this.#events.push(`${this.#name} is asked to stop`);
	}

	kill(): void {
		this.#events.push(`${this.#name} is killed`);
		this.exit(null, "SIGKILL");
	}
}

/** Both, begun. */
export function pairFixture(drainSeconds = 20) {
	const events: string[] = [];
	const warned: unknown[] = [];
	const relays: FakeChild[] = [];
	const boosts: FakeChild[] = [];
	const clock = new ManualClock();
	const stop = new AbortController();
	let code: number | undefined;
	const log = { ...silentLogger, error: (_message: string, fields?: object) => void warned.push(fields) };
	const ending = runPair(
		{
			relay() {
				const relay = new FakeChild(`relay ${relays.length + 1}`, events);
				relays.push(relay);
				return relay;
			},
			boost() {
				const boost = new FakeChild("boost", events);
				boosts.push(boost);
				return boost;
			},
		},
		{ clock, log, drainSeconds, stop: stop.signal },
	).then((ended) => {
		code = ended;
	});
	const last = (children: readonly FakeChild[]): FakeChild => {
		const child = children.at(-1);
		if (child === undefined) throw new Error("it was not started");
		return child;
	};
	const relay = (): FakeChild => last(relays);
	const boost = (): FakeChild => last(boosts);
	return {
		...{ events, warned, relays, relay, boosts, boost, clock, ending },
		/** Both serve. */
		async up() {
			relay().start();
			await clock.advance(0);
			boost().start();
			await clock.advance(0);
		},
		ask: () => stop.abort(),
		code: () => code,
		/** Forgets the events so far. */
		clear: () => void events.splice(0),
	};
}
