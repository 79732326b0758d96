// A cheap builder: mines what it is sent as it is, in one burst, without trials, so that the machine is left to what
// is measured. The dev builder is the real one.

import type { DevChain } from "../devnet/devChain.ts";
import { startPlainBuilder } from "../support/plainBuilder.ts";
import type { BuilderCall, BuilderPart } from "./world.ts";

/** anvil mixes up longer batches. */
const CHAIN_BATCH = 16;

/** Starts one on `chain`. */
export async function startPlainMiner(chain: DevChain): Promise<BuilderPart> {
	const builder = await startPlainBuilder();
	const mined = new Set<string>();
	const calls: BuilderCall[] = [];
	let burst: Promise<unknown> = Promise.resolve();
	const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
		const done = burst.then(work);
		burst = done.catch(() => {});
		return done;
	};
	const mine = async (): Promise<void> => {
		const raws = [...builder.raws()].filter((raw) => !mined.has(raw));
		for (const body of builder.bodies) calls.push(...callsOf(body));
		builder.reset();
		for (let i = 0; i < raws.length; i += CHAIN_BATCH) {
			const part = raws.slice(i, i + CHAIN_BATCH);
			// One that is refused now (its nonce is not due) is sent again by its relay with the next head.
			const taken = await chain.batch(
				part.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] })),
			);
			for (const [at, raw] of part.entries()) if (taken[at]?.ok === true) mined.add(raw);
		}
		await chain.rpc("evm_mine", []);
	};
	return {
		url: builder.url,
		buildBlock: () => inTurn(mine),
		outsideBurst: (look) => inTurn(look),
		calls: (count) => calls.slice(count),
		stop: () => builder.stop(),
	};
}

function callsOf(body: string): readonly BuilderCall[] {
	const json = JSON.parse(body) as BuilderCall | BuilderCall[];
	return Array.isArray(json) ? json : [json];
}
