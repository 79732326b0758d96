// A consensus node's event stream on loopback: the part of the beacon API that tells block builders
// of the next slot. It publishes what a test says, and has the faults that such nodes, and what
// stands in front of them, have. https://ethereum.github.io/beacon-APIs/#/Events/eventstream

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * The published values of the block on top of another one; 32 bytes of hex each, the time in
 * seconds.
 */
export interface Published {
	readonly parentHash: string;
	readonly parentNumber?: number;
	readonly timestamp: number;
	readonly prevRandao: string;
	readonly beaconRoot: string;
}

/** Its answer instead of a stream. */
export interface BeaconFault {
	readonly status: number;
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: string;
}

export type BeaconServer = Awaited<ReturnType<typeof startBeaconServer>>;

const PATH = "/eth/v1/events";

/**
 * Starts it, on a free port unless given. `prefix`: a path before that of the API; `credentials`:
 * wanted as Basic.
 */
export async function startBeaconServer(
	options: { readonly port?: number; readonly prefix?: string; readonly credentials?: string } = {},
) {
	const { prefix = "", credentials } = options;
	const wanted =
		credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`;
	const streams = new Set<ServerResponse>();
	const requests: { readonly url: string; readonly headers: IncomingMessage["headers"] }[] = [];
	let fault: BeaconFault | null = null;
	const refuse = (response: ServerResponse, status: number, message: string): void => {
		response.writeHead(status, { "content-type": "application/json" });
		response.end(JSON.stringify({ code: status, message }));
	};
	const server = createServer((request, response) => {
		const url = new URL(request.url ?? "", "http://beacon");
		requests.push({ url: request.url ?? "", headers: request.headers });
		if (fault !== null) {
			response.writeHead(fault.status, fault.headers ?? {});
			response.end(fault.body ?? "");
			return;
		}
		if (wanted !== undefined && request.headers.authorization !== wanted)
			return refuse(response, 401, "Unauthorized");
		if (request.method !== "GET" || url.pathname !== `${prefix}${PATH}`)
			return refuse(response, 404, "Not found");
		if (url.searchParams.get("topics") !== "payload_attributes")
			return refuse(response, 400, "Invalid topic");
		response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
		response.flushHeaders();
		streams.add(response);
		response.on("close", () => streams.delete(response));
	});
	const { port = 0 } = options;
	await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
	const raw = (text: string | Buffer): void => {
		for (const stream of streams) stream.write(text);
	};
	return {
		port: (server.address() as AddressInfo).port,
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
		requests,
		/** The number of open streams. */
		get streams(): number {
			return streams.size;
		},
		publish: (published: Published): void => raw(eventOf(published)),
		/** Writes to all open streams, whatever it is. */
		raw,
		/** Ends all open streams. */
		drop(): void {
			for (const stream of streams) stream.destroy();
		},
		/** The answer to new requests; null: a stream. */
		fail(next: BeaconFault | null): void {
			fault = next;
		},
		async stop(): Promise<void> {
			server.closeAllConnections();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/** The event, in the shape of the fork Electra. */
export function eventOf(published: Published): string {
	const data = {
		version: "electra",
		data: {
			proposer_index: "123",
			proposal_slot: "10",
			parent_block_number: String(published.parentNumber ?? 9),
			parent_block_root: published.beaconRoot,
			parent_block_hash: published.parentHash,
			payload_attributes: {
				timestamp: String(published.timestamp),
				prev_randao: published.prevRandao,
				suggested_fee_recipient: "0x0000000000000000000000000000000000000001",
				withdrawals: [
					{
						index: "5",
						validator_index: "10",
						address: "0x0000000000000000000000000000000000000000",
						amount: "15640",
					},
				],
				parent_beacon_block_root: published.beaconRoot,
			},
		},
	};
	return `event: payload_attributes\ndata: ${JSON.stringify(data)}\n\n`;
}
