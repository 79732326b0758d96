// Servers that listen where settings say: when one can't, the fault comes in and words that name the setting go out.

import type { HttpServer } from "./server.ts";

/** By the name of a server: the setting of its port, and its value. */
export type PortSettings = Readonly<Record<string, readonly [setting: string, port: number | undefined]>>;

/** A port or address of the settings can't be had. The message is meant for the operator. */
export class ListenError extends Error {
	readonly code = "LISTEN";
	constructor(message: string) {
		super(message);
		this.name = "ListenError";
	}
}

/** Starts them one after another. Throws {@link ListenError} for what another setting would help. */
export async function startListening(
	servers: readonly Pick<HttpServer, "name" | "start">[],
	ports: PortSettings,
): Promise<void> {
	for (const server of servers) {
		await server.start().catch((thrown: unknown) => {
			throw listenError(server.name, ports, thrown);
		});
	}
}

/** Says which setting it was and what was expected; anything that is not about an address stays as it was. */
function listenError(server: string, ports: PortSettings, thrown: unknown): unknown {
	const code = (thrown as { code?: unknown } | null)?.code;
	const [setting, port] = ports[server] ?? ["PORT", undefined];
	if (code === "EADDRINUSE" || code === "EACCES") {
		const problem = code === "EACCES" ? "may not be used" : "is taken";
		return new ListenError(
			`${setting} ${port} ${problem}: expected a free port, for example ${setting}=8090`,
		);
	}
	if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EINVAL" || code === "EAI_AGAIN") {
		return new ListenError(
			"HOST is not valid: expected an address of this machine, for example HOST=127.0.0.1",
		);
	}
	return thrown;
}
