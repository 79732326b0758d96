// What the tests of passed websockets share: the head of an upgrade, and a relay that takes it and echoes.

import type { IncomingMessage } from "node:http";
import { WebSocketServer } from "ws";
import type { PassFixtureOptions } from "./passFixture.ts";

/** Headers of a request for an upgrade. */
export const UPGRADE = {
	Connection: "Upgrade",
	Upgrade: "websocket",
	"Sec-WebSocket-Version": "13",
	"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};
/** The answer of who takes it. */
export const SWITCH = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

/** A relay that echoes, and what it saw of each upgrade. */
export function echo(seen: IncomingMessage[] = []): PassFixtureOptions {
	const server = new WebSocketServer({ noServer: true });
	return {
		upgrade: (request, socket, head) => {
			seen.push(request);
			server.handleUpgrade(request, socket, head, (websocket) => {
				websocket.on("message", (data) => websocket.send(String(data)));
			});
		},
	};
}
