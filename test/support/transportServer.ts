// A server with the tests' own methods (see rpcMethods.ts) on a free port.

import { setImmediate as nextTurn } from "node:timers/promises";
import { addressReader, type VerifySignature } from "../../shared/client.ts";
import { type Clock, systemClock } from "../../shared/clock.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { opsRoutes } from "../../shared/http/opsRoutes.ts";
import { RateLimiter } from "../../shared/http/rateLimit.ts";
import { type Route, rpcOverHttp } from "../../shared/http/routes.ts";
import { createHttpServer, type HttpServerOptions } from "../../shared/http/server.ts";
import type { Standby } from "../../shared/http/standby.ts";
import { UnreadBytes, type UnreadBytesOptions } from "../../shared/http/unreadBytes.ts";
import { RpcWebsocket, type RpcWebsocketOptions } from "../../shared/http/websocket.ts";
import { createDispatcher } from "../../shared/jsonrpc/dispatch.ts";
import type { RpcError } from "../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../shared/log.ts";
import { Script, testFallback, testMethods } from "./rpcMethods.ts";

/** Overrides the default options of these tests. */
export interface TransportOptions extends Partial<HttpServerOptions> {
	readonly maxBatch?: number;
	readonly unread?: UnreadBytesOptions;
	readonly rps?: number;
	readonly trustProxy?: number;
	readonly boostSecret?: string;
	readonly unavailable?: () => RpcError | null;
	readonly websocket?: Partial<RpcWebsocketOptions>;
	readonly clock?: Clock;
	/** Listens on the port until the server starts. */
	readonly standby?: Standby;
}

/** A running server. */
export type Transport = Awaited<ReturnType<typeof startTransport>>;

const PATHS = ["/", "/fast", "/noreverts"];

/** The digest of every body, as {@link verifyByLength} returns it. */
export const FAKE_DIGEST = `0x${"d1".repeat(32)}`;

/** Accepts a header that names the body's length: a fake that still can tell valid from invalid. */
const verifyByLength: VerifySignature = (header, body) => {
	const [address = "", length] = header.split(":");
	if (length === undefined) return { ok: false, reason: "malformed" };
	return Number(length) === body.length
		? { ok: true, address, digest: FAKE_DIGEST }
		: { ok: false, reason: "mismatch" };
};

/** Starts a server; the caller stops it. */
export async function startTransport(options: TransportOptions = {}) {
	const { maxBodyBytes = 4096, maxBatch = 5, rps = 0, trustProxy = 0, clock = systemClock } = options;
	const { boostSecret, unavailable, standby } = options;
	const standing = standby === undefined ? {} : { standby };
	const script = new Script();
	const log = silentLogger;
	const limiter = new RateLimiter({ rps }, { clock });
	const readAddress = addressReader({ trustProxy, ...(boostSecret === undefined ? {} : { boostSecret }) });
	const unread = new UnreadBytes({ clock }, options.unread);
	const methods = testMethods(script);
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch },
		{ methods, fallback: testFallback, limiter, log, clock },
	);
	const websocket = new RpcWebsocket(
		{ paths: [...PATHS, "/ws"], maxMessageBytes: maxBodyBytes, ...options.websocket },
		{ dispatcher, limiter, unread, clock },
	);
	const ops = opsRoutes({ checks: [], draining: () => server.draining }, { clock, log });
	const post = rpcOverHttp({
		...{ dispatcher, limiter },
		verifySignature: verifyByLength,
		...(unavailable === undefined ? {} : { unavailable }),
	});
	const server = createHttpServer(
		{
			...options,
			name: "test",
			host: "127.0.0.1",
			port: 0,
			rpcPaths: PATHS,
			routes: [...ops, ...TEST_ROUTES, ...(options.routes ?? [])],
			maxBodyBytes,
		},
		{ ...standing, post, websocket, readAddress, limiter, unread, log, clock },
	);
	await server.start();
	const { port } = server;
	return {
		port,
		/** `http://127.0.0.1:port` */
		url: `http://127.0.0.1:${port}`,
		server,
		websocket,
		script,
		async stop(): Promise<void> {
			for (const name of script.waiting) script.release(name);
			await nextTurn();
			await server.stop();
		},
	};
}

const TEST_ROUTES: readonly Route[] = [
	{
		path: "/echo/{word}",
		handle: ({ path, params, query, address }) => ({
			status: 200,
			body: JSON.stringify({ path, params, query: Object.fromEntries(query), address }),
		}),
	},
	{ path: "/weighed", handle: () => ({ status: 200, body: "{}" }) },
	{
		path: "/fault",
		handle: () => {
			throw new Error("0xdeadbeefcafe");
		},
	},
];

/** Runs `run` with a server that is stopped afterwards. */
export async function withTransport(
	options: TransportOptions,
	run: (transport: Transport) => Promise<void>,
): Promise<void> {
	const transport = await startTransport(options);
	try {
		await run(transport);
	} finally {
		await transport.stop();
	}
}
