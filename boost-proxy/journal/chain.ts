// What a journal is of: the format of its records, and the chain, whose id is asked for until somebody tells it. A journal
// of another chain stops the start where that is known by then, and is told of as an error where not.

import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import { parseQuantity } from "../../shared/ethereum/hex.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { ChainReads } from "../domain/ports.ts";

const FORMAT_KEY = "m/format";
const CHAIN_KEY = "m/chain";
/** Of the records that this version writes. */
const FORMAT = "1";

/** The journal was made for another chain. */
export class OtherChainError extends Error {
	readonly code = "OTHER_CHAIN";
	constructor(kept: string, asked: string) {
		super(
			`the journal belongs to another chain (chain id ${kept}; the upstreams have ${asked}): set DATA_DIR or DATABASE_URL to another one`,
		);
		this.name = "OtherChainError";
	}
}

/** The journal was written by a version whose records this one can't read. */
export class JournalFormatError extends Error {
	readonly code = "JOURNAL_FORMAT";
	constructor() {
		super(
			`the journal was written by another version (expected format ${FORMAT}): set DATA_DIR or DATABASE_URL to another one`,
		);
		this.name = "JournalFormatError";
	}
}

/** Ties a journal to a chain at the first call; throws {@link OtherChainError} where it is tied to another one. */
export type BindTo = (chainId: bigint) => Promise<void>;

/** Reads what the journal is of; marks a new one. Throws {@link JournalFormatError}, or the store's fault. */
export async function identify(kv: KeyValueStore): Promise<BindTo> {
	const format = await kv.get(FORMAT_KEY);
	if (format === null) await kv.write([{ key: FORMAT_KEY, value: Buffer.from(FORMAT) }]);
	else if (format.toString("utf8") !== FORMAT) throw new JournalFormatError();
	let chain = (await kv.get(CHAIN_KEY))?.toString("utf8") ?? null;
	return async (chainId) => {
		const asked = chainId.toString();
		if (chain !== null && chain !== asked) throw new OtherChainError(chain, asked);
		if (chain !== null) return;
		await kv.write([{ key: CHAIN_KEY, value: Buffer.from(asked) }]);
		chain = asked;
	};
}

export interface BindingDependencies {
	/** Throws where it is of another chain. */
	readonly bindTo: BindTo;
	readonly chain: ChainReads;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
}

/** The chain, once it is known. */
export interface Binding {
	/** Null until somebody told it. */
	readonly chainId: () => bigint | null;
	/** Asks once; goes on asking in the background where nobody answers. Rejects for a journal of another chain. */
	start(): Promise<void>;
	stop(): void;
}

const ASK_MS = 1_000;
const AGAIN_MS = 1_000;

/** Binds the journal as soon as the chain is known. */
export function bindWhenKnown(dependencies: BindingDependencies): Binding {
	const { bindTo, chain, clock, background, log } = dependencies;
	const stopping = new AbortController();
	let known: bigint | null = null;
	const ask = async (): Promise<boolean> => {
		const answers = await chain.batch([{ method: "eth_chainId", params: [] }], ASK_MS);
		const [answer] = answers ?? [];
		const told =
			answer?.ok === true && typeof answer.result === "string" ? parseQuantity(answer.result) : null;
		if (told === null) return false;
		known = told;
		try {
			await bindTo(told);
		} catch (thrown) {
			if (thrown instanceof OtherChainError) throw thrown;
			// The disk, which is told of elsewhere: it is asked again.
			return false;
		}
		return true;
	};
	const goOn = async (): Promise<void> => {
		while (!stopping.signal.aborted) {
			await pause(clock, AGAIN_MS, stopping.signal);
			try {
				if (await ask()) return;
			} catch (thrown) {
				log.error("the journal is of another chain", { fault: safeError(thrown) });
				return;
			}
		}
	};
	return {
		chainId: () => known,
		async start() {
			if (!(await ask())) background.run("chain", goOn);
		},
		stop: () => stopping.abort(),
	};
}
