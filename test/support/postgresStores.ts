// Stores in a real PostgreSQL, each closed with its test: as they are, by way of a wire that a test
// can cut, and as the next holder's.

import type { TestContext } from "node:test";
import { systemClock } from "../../shared/clock.ts";
import type { Change, SharedStore } from "../../shared/kv/port.ts";
import { openPostgres, type PostgresOptions } from "../../shared/kv/postgres/postgres.ts";
import { silentLogger } from "../../shared/log.ts";
import type { PostgresServer } from "./postgresServer.ts";
import { startTcpProxy, type TcpProxy } from "./tcpProxy.ts";
import { until } from "./until.ts";

export const put = (key: string, value: string) => ({ key, value: Buffer.from(value) });

/** A store at `url`. */
export async function opened(
	t: TestContext,
	url: string,
	options: Partial<PostgresOptions> = {},
	onLost = () => {},
	log = silentLogger,
): Promise<SharedStore> {
	const kv = await openPostgres(
		{ url, store: "relay", verify: false, ...options },
		{ clock: systemClock, log, onLost },
	);
	t.after(() => kv.close());
	return kv;
}

/** Opened as soon as another process has let go of it. */
export function openedNext(t: TestContext, url: string): Promise<SharedStore> {
	const tried = () => opened(t, url, { ttlMs: 400 }).catch(() => undefined);
	return until("another one has it", tried);
}

/** Whether the write succeeds. */
export function isWritten(kv: SharedStore, change: Change): Promise<boolean> {
	return kv.write([change]).then(
		() => true,
		() => false,
	);
}

/** A store in a new database of `server`, behind a wire that can be cut. */
export async function wired(
	t: TestContext,
	server: PostgresServer,
	...how: [options?: Partial<PostgresOptions>, onLost?: () => void]
): Promise<{ readonly kv: SharedStore; readonly wire: TcpProxy; readonly url: string }> {
	const url = new URL(await server.newDatabase());
	const wire = await startTcpProxy(Number(url.port));
	t.after(() => wire.stop());
	const direct = url.toString();
	url.port = String(wire.port);
	return { kv: await opened(t, url.toString(), ...how), wire, url: direct };
}
