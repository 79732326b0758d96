// A real name server on loopback (RFC 1035): it answers for the names that it knows, says of others
// that there are none, and is silent about those that a test wants silent.

import { createSocket, type RemoteInfo } from "node:dgram";
import type { AddressInfo } from "node:net";

const TYPES = { A: 1, AAAA: 28 } as const;
const NO_SUCH_NAME = 3;

interface Known {
	readonly addresses: readonly string[];
	readonly ttl: number;
}

export type NameServer = Awaited<ReturnType<typeof startNameServer>>;

/** Names that begin with `mute` are never answered for. */
export async function startNameServer(port = 0, host = "127.0.0.1") {
	const known = new Map<string, Known | "silent">();
	const asked: string[] = [];
	const socket = createSocket("udp4");
	socket.on("message", (query: Buffer, from: RemoteInfo) => {
		const { name, type, end } = questionOf(query);
		asked.push(name);
		const found = known.get(name);
		if (found === "silent" || name.startsWith("mute")) return;
		socket.send(answerTo(query.subarray(0, end), type, found), from.port, from.address);
	});
	await new Promise<void>((resolve) => socket.bind(port, host, resolve));
	return {
		/** As `host:port`. */
		address: `${host}:${(socket.address() as AddressInfo).port}`,
		/** The names that were asked for, once for each kind of address and try. */
		asked,
		knows(name: string, addresses: readonly string[], ttl = 60): void {
			known.set(name, { addresses, ttl });
		},
		silent(name: string): void {
			known.set(name, "silent");
		},
		forgets(name: string): void {
			known.delete(name);
		},
		reset(): void {
			known.clear();
			asked.length = 0;
		},
		stop: () => new Promise<void>((resolve) => socket.close(() => resolve())),
	};
}

function questionOf(query: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
	const labels: string[] = [];
	let at = 12;
	for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
		labels.push(query.toString("latin1", at + 1, at + 1 + length));
		at += 1 + length;
	}
	return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** `question`: the query's header and question. */
function answerTo(question: Buffer, type: number, known: Known | undefined): Buffer {
	const isWanted = (address: string) => (address.includes(":") ? TYPES.AAAA : TYPES.A) === type;
	const addresses = known?.addresses.filter(isWanted) ?? [];
	const head = Buffer.from(question);
	// An answer, by a server that may be asked for everything.
	head.writeUInt16BE(0x8180 | (known === undefined ? NO_SUCH_NAME : 0), 2);
	head.writeUInt16BE(addresses.length, 6);
	head.writeUInt32BE(0, 8);
	const records = addresses.map((address) => {
		const data = bytesOf(address);
		const record = Buffer.alloc(12);
		// A pointer to the name in the question.
		record.writeUInt16BE(0xc00c, 0);
		record.writeUInt16BE(type, 2);
		record.writeUInt16BE(1, 4);
		record.writeUInt32BE(known?.ttl ?? 0, 6);
		record.writeUInt16BE(data.length, 10);
		return Buffer.concat([record, data]);
	});
	return Buffer.concat([head, ...records]);
}

function bytesOf(address: string): Buffer {
	if (!address.includes(":")) return Buffer.from(address.split(".").map(Number));
	const [before = "", after = ""] = address.split("::");
	const groups = (text: string) => text.split(":").filter((group) => group !== "");
	const missing = 8 - groups(before).length - groups(after).length;
	const all = [...groups(before), ...Array<string>(missing).fill("0"), ...groups(after)];
	return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
}
