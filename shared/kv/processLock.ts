// A lock on a folder that ends with the process that holds it: what comes in is a folder, what goes out is a
// release function, or a refusal. It guards against a second process on the same machine, not across machines.

import { createHash } from "node:crypto";
import { realpathSync, unlinkSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Another process has the folder. */
export class FolderInUseError extends Error {
	readonly code = "FOLDER_IN_USE";
	constructor(folder: string) {
		super(`another process uses the data folder ${folder}: stop it, or set DATA_DIR to another folder`);
		this.name = "FolderInUseError";
	}
}

/**
 * Takes the lock of `folder`, which must exist. A listening local socket is the lock: the system takes it away when
 * the process dies, however it dies, and no process id can be mistaken. Throws {@link FolderInUseError}.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
	const name = `leeward-${createHash("sha256").update(realpathSync(folder)).digest("hex").slice(0, 32)}`;
	// Linux has names without a file, which can't be left behind; elsewhere the file may be stale.
	const address = process.platform === "linux" ? `\0${name}` : join(tmpdir(), `${name}.sock`);
	const server = createServer((socket) => socket.destroy());
	if (!(await listens(server, address))) {
		if (process.platform === "linux" || (await answers(address))) throw new FolderInUseError(folder);
		unlinkSync(address);
		if (!(await listens(server, address))) throw new FolderInUseError(folder);
	}
	server.unref();
	return () => new Promise((resolve) => server.close(() => resolve()));
}

function listens(server: Server, address: string): Promise<boolean> {
	return new Promise((resolve, reject) => {
		const onError = (error: NodeJS.ErrnoException) =>
			error.code === "EADDRINUSE" ? resolve(false) : reject(error);
		server.once("error", onError);
		server.listen(address, () => {
			server.off("error", onError);
			resolve(true);
		});
	});
}

function answers(address: string): Promise<boolean> {
	return new Promise((resolve) => {
		const socket = connect(address);
		socket.once("connect", () => {
			socket.destroy();
			resolve(true);
		});
		socket.once("error", () => resolve(false));
	});
}
