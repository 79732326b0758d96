// A TCP proxy on loopback for partitions: bytes of one direction, or of both, stop on their way and
// nobody is notified, as if packets were dropped. They arrive when the partition ends, if both ends
// still have their connection. It distinguishes the processes that connect, so that one of several
// clients can be cut off.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * The bytes that stop: those from the connecting side (`up`), those to it (`down`), or both;
 * `refused`: all connections end.
 */
export type Cut = "up" | "down" | "both" | "refused";

export interface PartitionProxy {
	readonly port: number;
	/** From now on, for all connections, open and new ones, or for those of the process `pid`. */
	cut(how: Cut, pid?: number): void;
	/** Ends all cuts. */
	mend(): void;
	stop(): Promise<void>;
}

interface Pair {
	readonly incoming: Socket;
	readonly outgoing: Socket;
	/** The process that connected. */
	readonly pid: number | null;
}

/**
 * Starts one in front of the port `to`. `pids`: processes that may connect, where they are to be
 * told apart.
 */
export async function startPartitionProxy(
	to: number,
	pids?: () => readonly number[],
): Promise<PartitionProxy> {
	const pairs = new Set<Pair>();
	let current: { readonly how: Cut; readonly pid: number | null } | null = null;
	const cutOf = ({ pid }: Pair): Cut | null =>
		current !== null && (current.pid === null || current.pid === pid) ? current.how : null;
	const apply = (pair: Pair): void => {
		const { incoming, outgoing } = pair;
		const how = cutOf(pair);
		if (how === "refused") incoming.destroy();
		if (how === "up" || how === "both") incoming.pause();
		else incoming.resume();
		if (how === "down" || how === "both") outgoing.pause();
		else outgoing.resume();
	};
	const server = createServer((incoming) => {
		const pid = pids === undefined ? null : ownerOf(incoming, pids());
		const outgoing = connect(to, "127.0.0.1");
		const pair = { incoming, outgoing, pid };
		pairs.add(pair);
		for (const [from, other] of [
			[incoming, outgoing],
			[outgoing, incoming],
		] as const) {
			from.setNoDelay(true);
			from.on("error", () => {});
			from.on("data", (chunk) => other.write(chunk));
			from.on("close", () => {
				pairs.delete(pair);
				// Bytes that came before the end are written first.
				other.destroySoon();
			});
		}
		apply(pair);
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		port: (server.address() as AddressInfo).port,
		cut(how, pid) {
			current = { how, pid: pid ?? null };
			for (const pair of [...pairs]) apply(pair);
		},
		mend() {
			current = null;
			for (const pair of [...pairs]) apply(pair);
		},
		async stop() {
			for (const { incoming, outgoing } of [...pairs]) {
				incoming.destroy();
				outgoing.destroy();
			}
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

/** Which of `pids` has the other end of a connection on loopback; null: none of them. */
function ownerOf({ remotePort, localPort }: Socket, pids: readonly number[]): number | null {
	const [near, far] = [remotePort, localPort].map((port) => `:${hexOf(port ?? 0)}`);
	const line = readFileSync("/proc/net/tcp", "utf8")
		.split("\n")
		.map((one) => one.trim().split(/\s+/))
		.find(([, local = "", remote = ""]) => local.endsWith(near ?? "") && remote.endsWith(far ?? ""));
	const wanted = `socket:[${line?.[9]}]`;
	return pids.find((pid) => socketsOf(pid).includes(wanted)) ?? null;
}

/** The targets of a process's descriptors; none if it has ended. */
function socketsOf(pid: number): readonly string[] {
	const folder = `/proc/${pid}/fd`;
	try {
		return readdirSync(folder).map((name) => linkOf(`${folder}/${name}`));
	} catch {
		return [];
	}
}

function linkOf(path: string): string {
	try {
		return readlinkSync(path);
	} catch {
		return "";
	}
}

function hexOf(port: number): string {
	return port.toString(16).toUpperCase().padStart(4, "0");
}
