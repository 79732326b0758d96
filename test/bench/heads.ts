// Measures a head: a relay has 10,000 pending transactions of as many senders, and a block comes
// that holds none of them. The figure is when a builder has the highest-paying half for the next
// block. The comparison is a half that was drawn by lot: in an order that ignores payments, the
// highest-paying half would be there at that time.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startDevChain } from "../devnet/devChain.ts";
import { rawTransaction } from "../support/txFactory.ts";
import {
	benchAccounts,
	CONNECTIONS,
	delivered,
	type Figure,
	fund,
	load,
	median,
	nextHead,
	startRelay,
	submissionOf,
} from "./load.ts";

const PENDING = 10_000;
/** The first one is not counted: the code is cold then. */
const HEADS = 6;
const GWEI = 1_000_000_000;

/** Runs it; takes about half a minute. */
export async function benchHeads(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const builder = await startRecorder();
	try {
		const relay = await startRelay(chain, builder.url, { ETH_WS_URL: chain.wsUrl });
		const accounts = benchAccounts(PENDING);
		await fund(chain, accounts);
		// The priority fees go up and down along the order of arrival: 7,919 has no divisor in common
		// with 10,000.
		const tips = accounts.map((_, i) => ((i * 7_919) % PENDING) + 1);
		const raws = accounts.map((by, i) => {
			const fees = { maxFeePerGas: 100 * GWEI, maxPriorityFeePerGas: (tips[i] ?? 0) * 100_000 };
			return `0x${rawTransaction({ by, nonce: 0, gasLimit: 30_000, value: 1, ...fees }).toString("hex")}`;
		});
		const { answers } = await load(`${relay.url}/fast`, raws.map(submissionOf), CONNECTIONS);
		const refused = answers.find((answer) => !answer.includes('"result"'));
		if (refused !== undefined) throw new Error(`a submission was refused: ${refused}`);
		await builder.has(new Set(raws));
		const highest = new Set(raws.filter((_, i) => (tips[i] ?? 0) > PENDING / 2));
		const drawn = new Set(raws.filter((_, i) => i % 2 === 0));
		const [high, any, all, cpu]: [number[], number[], number[], number[]] = [[], [], [], []];
		for (let head = 0; head < HEADS; head += 1) {
			await delivered(relay);
			builder.forget();
			const before = relay.process.cpuMicros();
			const begun = performance.now();
			const half = builder.counts(PENDING / 2).then(() => relay.process.cpuMicros() - before);
			await nextHead(chain);
			await builder.has(new Set(raws));
			if (head === 0) continue;
			cpu.push((await half) / 1000);
			const at = builder.times();
			const sentAfter = (some: Iterable<string>) =>
				Math.max(...[...some].map((raw) => at.get(raw) ?? Number.NaN)) - begun;
			high.push(sentAfter(highest));
			any.push(sentAfter(drawn));
			all.push(sentAfter(raws));
		}
		await relay.stop();
		return [
			{ name: "10,000 pending at a head: the highest-paying half is sent after", value: ms(high) },
			{ name: "  the relay's CPU time until half is sent, all threads", value: ms(cpu) },
			{ name: "  a half that was drawn by lot is sent after", value: ms(any) },
			{ name: "  all are sent after", value: ms(all) },
		];
	} finally {
		await builder.stop();
		await chain.stop();
	}
}

function ms(values: readonly number[]): string {
	return `${median(values).toFixed(0)} ms`;
}

/** A builder that takes everything, and notes when. */
async function startRecorder() {
	const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: null });
	/** Bodies with the time of their last byte; they are read when nothing is measured. */
	let bodies: (readonly [Buffer, number])[] = [];
	let onBody = (): void => {};
	let onCount = { count: 0, call: (): void => {} };
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			bodies.push([Buffer.concat(chunks), performance.now()]);
			response.end(answer);
			if (bodies.length === onCount.count) onCount.call();
			onBody();
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	/** When it got each raw transaction for the first time. */
	const times = (): ReadonlyMap<string, number> => {
		const first = new Map<string, number>();
		for (const [body, at] of bodies) {
			const { params } = JSON.parse(body.toString("utf8")) as { params: { txs?: string[] }[] };
			for (const raw of params[0]?.txs ?? []) if (!first.has(raw)) first.set(raw, at);
		}
		return first;
	};
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		times,
		forget(): void {
			bodies = [];
		},
		/** Resolves when it has got so many bodies since {@link forget}. */
		counts: (count: number) => new Promise<void>((call) => (onCount = { count, call })),
		/** Resolves when it has as many bodies as there are in `raws`, and each of them. */
		async has(raws: ReadonlySet<string>): Promise<void> {
			await new Promise<void>((resolve) => {
				onBody = () => {
					if (bodies.length < raws.size) return;
					const known = times();
					if ([...raws].every((raw) => known.has(raw))) resolve();
				};
				onBody();
			});
			onBody = () => {};
		},
		stop: () => {
			server.closeAllConnections();
			return new Promise((resolve) => server.close(() => resolve(undefined)));
		},
	};
}
