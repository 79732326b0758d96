// Starts HAProxy and nginx, where installed, in front of an address, with one worker each and no
// rules.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { MeasuredProcess } from "./childProcess.ts";

/** A proxy that runs. */
export interface BenchProxy {
	readonly name: string;
	readonly process: MeasuredProcess;
	/** `http://127.0.0.1:port` */
	readonly url: string;
	stop(): Promise<void>;
}

/** Both run as one process that stays in front, so that its CPU time is all there is. */
const PROXIES: readonly {
	readonly name: string;
	readonly config: (port: number, target: string, folder: string) => string;
	readonly args: (file: string, folder: string) => readonly string[];
}[] = [
	{
		name: "haproxy",
		config: (port, target) =>
			[
				"global",
				"  nbthread 1",
				"defaults",
				"  mode http",
				"  timeout connect 5s",
				"  timeout client 30s",
				"  timeout server 30s",
				"frontend in",
				`  bind 127.0.0.1:${port}`,
				"  default_backend out",
				"backend out",
				"  http-reuse always",
				`  server relay ${new URL(target).host}`,
				"",
			].join("\n"),
		args: (file) => ["-db", "-f", file],
	},
	{
		name: "nginx",
		config: (port, target, folder) =>
			[
				"daemon off; master_process off;",
				`error_log ${folder}/error.log crit; pid ${folder}/pid;`,
				"events { worker_connections 1024; }",
				"http {",
				"  access_log off;",
				`  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;`,
				`  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;`,
				`  upstream relay { server ${new URL(target).host}; keepalive 128; }`,
				`  server { listen 127.0.0.1:${port}; keepalive_requests 1000000;`,
				'    location / { proxy_pass http://relay; proxy_http_version 1.1; proxy_set_header Connection ""; } }',
				"}",
				"",
			].join("\n"),
		args: (file, folder) => ["-p", folder, "-c", file],
	},
];

/** Starts those that are installed and come up. */
export async function startInstalledProxies(target: string): Promise<readonly BenchProxy[]> {
	const started: BenchProxy[] = [];
	for (const { name, config, args } of PROXIES) {
		const command = find(name);
		if (command === null) continue;
		const folder = mkdtempSync(join(tmpdir(), `leeward-${name}-`));
		const port = await freePort();
		const file = join(folder, "proxy.conf");
		writeFileSync(file, config(port, target, folder));
		const process = new MeasuredProcess(command, args(file, folder));
		const stop = async () => {
			await process.stop();
			rmSync(folder, { recursive: true, force: true });
		};
		const url = `http://127.0.0.1:${port}`;
		if (await answers(url)) started.push({ name, process, url, stop });
		else await stop();
	}
	return started;
}

function find(name: string): string | null {
	const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
	return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

async function freePort(): Promise<number> {
	const server = createServer();
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const address = server.address();
	await new Promise<void>((resolve) => server.close(() => resolve()));
	return typeof address === "object" && address !== null ? address.port : 0;
}

async function answers(url: string): Promise<boolean> {
	for (let i = 0; i < 50; i++) {
		const reply = await fetch(url, { signal: AbortSignal.timeout(1_000) }).catch(() => null);
		if (reply?.status === 200) return true;
		await pause(100);
	}
	return false;
}
