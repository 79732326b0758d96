// Structured logs with a closed list of fields, so that raw transactions, signatures, keys and
// texts of other servers cannot get into them.

import { type DestinationStream, pino } from "pino";

/** Levels, the most talkative first. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The only fields a log line may carry. Times in ms, sizes in bytes, wei as decimal strings. */
export interface LogFields {
	readonly hash?: string;
	/** The id of the request, see requestId.ts. For a transaction it is the id of its submission. */
	readonly request?: string | undefined;
	readonly block?: number;
	readonly upstream?: string;
	readonly path?: string;
	readonly method?: string;
	readonly stage?: string;
	readonly code?: string | number;
	readonly count?: number;
	readonly limit?: number;
	readonly bytes?: number;
	readonly ms?: number;
	readonly port?: number;
	readonly chainId?: string;
	readonly setting?: string;
	readonly task?: string;
	readonly store?: string;
	/** The key of a store's entry. */
	readonly key?: string;
	/** Term of the core. */
	readonly term?: number;
	readonly native?: boolean;
	readonly signal?: string;
	readonly reason?: string;
	/** The setting or cause that the operator should check, see outgoing/advice.ts. */
	readonly hint?: string;
	readonly version?: string;
	/** Made by {@link safeError}. */
	readonly fault?: SafeError;
}

/**
 * The loggable part of an error: its class and code. The message is never included, since it may
 * quote a raw transaction.
 */
interface SafeError {
	readonly name: string;
	readonly code?: string;
	/**
	 * For an error of an upstream or of the database: its host, the system's error code or
	 * SQLSTATE, and the HTTP status.
	 */
	readonly host?: string;
	readonly reason?: string;
	readonly status?: number;
	/** Place in our own code that threw it, as `file:line`. */
	readonly at?: string;
}

type Level = Exclude<LogLevel, "silent">;

/**
 * Use `error` for our own faults, `warn` for events that may become one, and at most `debug` for
 * bad input.
 */
export interface Logger extends Record<Level, (message: string, fields?: LogFields) => void> {
	/** A logger whose lines name a part of the process. */
	child(part: string): Logger;
}

/**
 * Reduces anything thrown to its printable part. The message is omitted on purpose: an ethers error
 * may quote the raw transaction, and an HTTP client's error the URL with its key.
 */
export function safeError(thrown: unknown): SafeError {
	if (!(thrown instanceof Error)) return { name: typeof thrown };
	const { name, message, stack = "" } = thrown;
	const { code, host, reason, status } = thrown as Partial<Record<keyof SafeError, unknown>>;
	// The message may look like a stack frame, so only the text after it is searched.
	const frames = stack.slice(stack.indexOf(message) + message.length);
	const at = /((?:relay|shared|boost-proxy|test)\/[\w/.-]+:\d+)/.exec(frames)?.[1];
	return {
		name: /^\w{1,64}$/.test(name) ? name : "Error",
		...(typeof code === "string" && /^[\w-]{1,64}$/.test(code) ? { code } : {}),
		...(typeof host === "string" && /^[\w.:[\]-]{1,255}$/.test(host) ? { host } : {}),
		...(typeof reason === "string" && /^[A-Z0-9_]{1,40}$/.test(reason) ? { reason } : {}),
		...(typeof status === "number" ? { status } : {}),
		...(at === undefined ? {} : { at }),
	};
}

/** A logger that writes JSON lines to `destination` (standard output unless given). */
export function createLogger(level: LogLevel, name: string, destination?: DestinationStream): Logger {
	const options = { level, base: { name }, timestamp: pino.stdTimeFunctions.isoTime };
	// Synchronous, so that the last line before an exit, which has the reason, is written.
	return wrap(pino(options, destination ?? batched(pino.destination({ fd: 1, sync: true }))));
}

/**
 * Writes all lines of one turn of the event loop together, since a write costs more than making a
 * line.
 */
function batched(destination: DestinationStream): DestinationStream {
	let lines = "";
	const flush = (): void => {
		if (lines !== "") destination.write(lines);
		lines = "";
	};
	process.on("exit", flush);
	return {
		write(line) {
			if (lines === "") setImmediate(flush);
			lines += line;
		},
	};
}

const NOTHING = (): void => {};

export const silentLogger: Logger = {
	trace: NOTHING,
	debug: NOTHING,
	info: NOTHING,
	warn: NOTHING,
	error: NOTHING,
	child: () => silentLogger,
};

/** The part of pino that is used here; pino's own type fails under exactOptionalPropertyTypes. */
interface PinoLike extends Record<Level, (fields: object, message: string) => void> {
	child(bindings: { part: string }): PinoLike;
}

function wrap(target: PinoLike): Logger {
	return {
		trace: (message, fields) => target.trace(fields ?? {}, message),
		debug: (message, fields) => target.debug(fields ?? {}, message),
		info: (message, fields) => target.info(fields ?? {}, message),
		warn: (message, fields) => target.warn(fields ?? {}, message),
		error: (message, fields) => target.error(fields ?? {}, message),
		child: (part) => wrap(target.child({ part })),
	};
}
