// A websocket in front of several nodes' websockets, which may be of different chains: a subscriber
// gets the heads of all of them.

import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";

/** A running one. */
export interface MixedHeads {
	/** ws://127.0.0.1:port */
	readonly url: string;
	/** Subscriptions that are open at all nodes. */
	readonly subscribed: number;
	/** The hashes of the heads that every subscriber has been sent, oldest first. */
	readonly announced: readonly string[];
	stop(): Promise<void>;
}

const ID = "0x1";
const SUBSCRIBE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] });

interface Message {
	readonly id?: unknown;
	readonly params?: { readonly result: { readonly hash: string } };
}

/** Starts it in front of the nodes at `urls` (ws). */
export async function startMixedHeads(...urls: readonly string[]): Promise<MixedHeads> {
	const announced: string[] = [];
	const sockets = new Set<WebSocket>();
	let subscribed = 0;
	const join = (client: WebSocket): void => {
		let confirmed = 0;
		for (const url of urls) {
			const node = new WebSocket(url);
			sockets.add(node);
			node.on("error", () => {});
			node.on("open", () => node.send(SUBSCRIBE));
			node.on("message", (data) => {
				const { id, params } = JSON.parse(String(data)) as Message;
				if (id === 1) {
					confirmed += 1;
					if (confirmed < urls.length) return;
					subscribed += 1;
					client.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: ID }));
				} else if (params !== undefined) {
					const { result } = params;
					announced.push(result.hash);
					const told = { subscription: ID, result };
					client.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params: told }));
				}
			});
			client.on("close", () => node.terminate());
			node.on("close", () => client.terminate());
		}
	};
	const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	server.on("connection", (client) => {
		sockets.add(client);
		client.on("error", () => {});
		// It subscribes to nothing else.
		client.once("message", () => join(client));
	});
	await new Promise((resolve) => server.once("listening", resolve));
	return {
		url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
		get subscribed() {
			return subscribed;
		},
		announced,
		async stop() {
			for (const socket of sockets) socket.terminate();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}
