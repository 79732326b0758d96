// Which chain the journal is of: the chain's id is asked for until somebody tells it, and the journal is bound to it. A
// journal of another chain stops the start where that is known by then, and is told of as an error where not.

import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import { parseQuantity } from "../../shared/ethereum/hex.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { ChainReads } from "../domain/ports.ts";

export interface BindingDependencies {
	/** Throws where it is of another chain. */
	readonly journal: { bindTo(chainId: bigint): Promise<void> };
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

function isOtherChain(thrown: unknown): boolean {
	return (thrown as { code?: unknown } | null)?.code === "OTHER_CHAIN";
}

/** Binds the journal as soon as the chain is known. */
export function bindWhenKnown(dependencies: BindingDependencies): Binding {
	const { journal, chain, clock, background, log } = dependencies;
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
			await journal.bindTo(told);
		} catch (thrown) {
			if (isOtherChain(thrown)) throw thrown;
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
