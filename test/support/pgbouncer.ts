// Starts a real PgBouncer in front of a PostgreSQL server, on a free port.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../devnet/freePort.ts";
import { identity, SUPERVISED } from "./postgresServer.ts";
import { until } from "./until.ts";

/** Debian installs it where only root looks. */
const ENV = { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };

/** Why it can't run here; false if it can. */
export const noPgbouncer =
	spawnSync("pgbouncer", ["--version"], { env: ENV }).status === 0 ? false : "pgbouncer is not installed";

/** Starts one with its own defaults but `settings`, in front of the server of `url`. */
export async function startPgbouncer(url: string, settings: Readonly<Record<string, string>>) {
	const { hostname, port: target, username } = new URL(url);
	const folder = mkdtempSync(join(tmpdir(), "leeward-pgbouncer-"));
	chmodSync(folder, 0o755);
	const port = await freePort();
	const users = join(folder, "users.txt");
	writeFileSync(users, `"${username}" ""\n`);
	const all = {
		...{ listen_addr: "127.0.0.1", listen_port: port, unix_socket_dir: "" },
		...{ auth_type: "trust", auth_file: users, ...settings },
	};
	const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
	const ini = join(folder, "pgbouncer.ini");
	writeFileSync(
		ini,
		[`[databases]`, `* = host=${hostname} port=${target}`, `[pgbouncer]`, ...lines, ""].join("\n"),
	);
	const child = spawn("/bin/sh", ["-c", SUPERVISED, "pgbouncer", "-q", ini], {
		...{ ...identity, cwd: folder, env: ENV },
		stdio: ["pipe", "ignore", "ignore"],
	});
	child.stdin?.on("error", () => {});
	const ended = once(child, "exit");
	await until("PgBouncer listens", () => isListening(port));
	return {
		/** The URL of the same database through it. */
		url: Object.assign(new URL(url), { port: String(port) }).href,
		async stop(): Promise<void> {
			child.kill("SIGKILL");
			await ended;
			child.stdin?.end("\n");
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

async function isListening(port: number): Promise<boolean> {
	const socket = connect(port, "127.0.0.1");
	return once(socket, "connect")
		.then(
			() => true,
			() => false,
		)
		.finally(() => socket.destroy());
}
