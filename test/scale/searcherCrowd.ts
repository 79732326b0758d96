// The process of a crowd of searchers and of the balancer between them and the relays: COUNT
// websockets on the feed of RELAY_PORTS, each of a network address of its own, which are numbered
// from FIRST. One that is closed comes back within a second or two, as clients do, and tries again
// while it can't. Every quarter of a second it prints how many are open, how many were closed so
// far with which codes, how many transactions were disclosed, and how many did not come to a
// websocket that was open.

import { WebSocket } from "ws";
import { pause, systemClock } from "../../shared/clock.ts";
import { startBalancer } from "../devnet/balancer.ts";

const { RELAY_PORTS = "", FIRST = "0", COUNT = "0" } = process.env;
/** Before a client comes back, in ms: so much, and as much again by chance. */
const BACK_MS = 500;
const TELL_MS = 250;
const SUBSCRIBE = JSON.stringify({
	...{ jsonrpc: "2.0", id: 1 },
	...{ method: "eth_subscribe", params: ["service_partialPendingTransactions"] },
});

const balancer = await startBalancer(0, RELAY_PORTS.split(",").map(Number));
const url = balancer.url.replace("http", "ws");
/**
 * A transaction that came first to any of the websockets at least this long after one was
 * subscribed must come to that one too, in ms.
 */
const LATE_MS = 5_000;
let open = 0;
const codes: Record<string, number> = {};
/** When each disclosed transaction first came, in ms, in this order. */
const firsts: number[] = [];
const numbers = new Map<string, number>();
const subscribed = new Set<Subscribed>();
/** Transactions that closed websockets missed, and those that came twice to one. */
let [lost, twice] = [0, 0];

/** A websocket's subscription. */
interface Subscribed {
	readonly since: number;
	/** The numbers of the transactions that came. */
	readonly had: Set<number>;
}

const HASH = '"hash":"';
const HASH_LENGTH = 66;

/** Notes a disclosed transaction. */
function note({ had }: Subscribed, message: Buffer): void {
	const at = message.indexOf(HASH) + HASH.length;
	const hash = message.toString("latin1", at, at + HASH_LENGTH);
	let number = numbers.get(hash);
	if (number === undefined) {
		number = firsts.push(performance.now()) - 1;
		numbers.set(hash, number);
	}
	if (had.has(number)) twice += 1;
	had.add(number);
}

/**
 * Transactions that have not come to a websocket, of those before the last one that came: news
 * comes in order. `isOpen`: it should have the later ones, too.
 */
function missed({ since, had }: Subscribed, isOpen: boolean): number {
	let count = 0;
	for (let i = isOpen ? firsts.length - 1 : Math.max(-1, ...had); i >= 0; i -= 1) {
		if ((firsts[i] as number) < since + LATE_MS) break;
		if (!had.has(i)) count += 1;
	}
	return count;
}

async function live(i: number): Promise<never> {
	const address = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
	for (;;) {
		await new Promise<void>((resolve) => {
			const socket = new WebSocket(url, {
				headers: { "x-forwarded-for": address },
				perMessageDeflate: false,
				skipUTF8Validation: true,
			});
			let own: Subscribed | null = null;
			socket.on("open", () => socket.send(SUBSCRIBE));
			socket.on("message", (message: Buffer) => {
				if (own !== null) return note(own, message);
				own = { since: performance.now(), had: new Set() };
				subscribed.add(own);
				open += 1;
			});
			socket.on("error", () => {});
			socket.on("close", (code) => {
				if (own !== null) {
					open -= 1;
					codes[code] = (codes[code] ?? 0) + 1;
					subscribed.delete(own);
					lost += missed(own, false);
				}
				resolve();
			});
		});
		await pause(systemClock, BACK_MS * (1 + Math.random()));
	}
}

for (let i = 0; i < Number(COUNT); i += 1) {
	void live(Number(FIRST) + i + 1);
	// Not all at once, which would be a storm of its own.
	if (i % 50 === 49) await pause(systemClock, 20);
}
for (;;) {
	const missing = [...subscribed].reduce((sum, one) => sum + missed(one, true), 0);
	const told = { open, codes, disclosed: firsts.length, missing, lost, twice };
	process.stdout.write(`${JSON.stringify({ level: 30, msg: "crowd", ...told })}\n`);
	await pause(systemClock, TELL_MS);
}
