// The process of a crowd of searchers and of the balancer between them and the relays: COUNT
// websockets on the feed of RELAY_PORTS, each of a network address of its own, which are numbered
// from FIRST. One that is closed comes back within a second or two, as clients do, and tries again
// while it can't. Every quarter of a second it prints how many are open, and how many were closed
// so far with which codes.

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
let open = 0;
const codes: Record<string, number> = {};

async function live(i: number): Promise<never> {
	const address = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
	for (;;) {
		await new Promise<void>((resolve) => {
			const socket = new WebSocket(url, {
				headers: { "x-forwarded-for": address },
				perMessageDeflate: false,
				skipUTF8Validation: true,
			});
			let isSubscribed = false;
			socket.on("open", () => socket.send(SUBSCRIBE));
			socket.on("message", () => {
				if (isSubscribed) return;
				isSubscribed = true;
				open += 1;
			});
			socket.on("error", () => {});
			socket.on("close", (code) => {
				if (isSubscribed) {
					open -= 1;
					codes[code] = (codes[code] ?? 0) + 1;
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
	process.stdout.write(`${JSON.stringify({ level: 30, msg: "crowd", open, codes })}\n`);
	await pause(systemClock, TELL_MS);
}
