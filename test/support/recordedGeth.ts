// go-ethereum for contract tests. If GETH names one the tests run on it, and with RECORD_GETH=1
// record its answers in test/contract/recorded. Without GETH the recorded answers are replayed, and
// a call without one fails.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import { devAccounts } from "../devnet/devChain.ts";
import { GETH, type GethBlock, type GethChain, type GethOptions, startGeth } from "../devnet/gethChain.ts";
import { mineInOrder, type RealOutcome } from "./callManyReal.ts";

/** A chain of geth, real or replayed. */
export type RecordedGeth = Awaited<ReturnType<typeof startRecordedGeth>>;

/** A call and its answer. */
interface Recorded {
	/** Number of changes of the chain before the call. */
	readonly changes: number;
	readonly method: string;
	/** As JSON; if that is long, its beginning and a hash. */
	readonly params: string;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

const FOLDER = join(dirname(dirname(fileURLToPath(import.meta.url))), "contract", "recorded");
/** Long fields of answers that nothing here reads. */
const LEFT_OUT = new Set([
	...[
		"logsBloom",
		"extraData",
		"receiptsRoot",
		"requestsHash",
		"sha3Uncles",
		"transactionsRoot",
		"stateRoot",
	],
	...["withdrawalsRoot", "size", "uncles", "withdrawals", "difficulty", "maxUsedGas"],
]);
/** Maximum characters recorded of a call's parameters. */
const MAX_TEXT = 80;
/** The recorded fields of a simulated block. */
const SIMULATED = new Set(["number", "calls"]);

/**
 * Starts geth, or reads the answers recorded as `name`. Calls must be the same in each run, except
 * for the random fields `drawn`; all else that the relay draws at random must be given to it by the
 * test.
 */
export async function startRecordedGeth(
	name: string,
	options: GethOptions = {},
	drawn: readonly string[] = [],
) {
	const file = join(FOLDER, `${name}.json`);
	const keyOf = keysWithout(new Set(drawn));
	const chain = GETH === undefined ? replayed(file, keyOf) : live(await startGeth(options));
	const asked = new Map<string, Recorded>();
	let changes = 0;
	const note = <T extends Partial<Recorded>>(question: Question, answer: T): void => {
		const [key, params] = keyOf(question);
		asked.set(key, { ...question, params, ...answer });
	};
	const call = async ({ method, params }: RpcCall): Promise<RpcAnswer> => {
		const question = { changes, method, params };
		const answer = trimmed(method, await chain.ask(question));
		note(question, answer.ok ? { result: answer.result } : { error: answer.error });
		return answer;
	};
	const change = async <T>(
		method: "mine" | "mineInOrder" | "revert" | "restart",
		param: unknown,
	): Promise<T> => {
		changes += 1;
		const question = { changes, method, params: [param] };
		const result = await chain.change(question);
		note(question, { result });
		return result as T;
	};
	return {
		accounts: devAccounts(10),
		/** The node, as the relay's parts use it. */
		node: { call, batch: (calls: readonly RpcCall[]) => Promise.all(calls.map(call)) },
		/** The result of one call. Throws geth's errors. */
		async rpc(method: string, params: readonly unknown[] = []): Promise<unknown> {
			const answer = await call({ method, params });
			if (!answer.ok) throw new Error(`${method}: ${answer.error.message} (${answer.error.code})`);
			return answer.result;
		},
		/**
		 * Mines a block, and returns its hash. Equal calls before and after it are recorded separately.
		 */
		mine: (block: GethBlock = {}): Promise<string> => change("mine", block),
		/**
		 * Mines those of the block's transactions that geth accepts one after another; returns the
		 * outcome of each.
		 */
		mineInOrder: (block: GethBlock): Promise<RealOutcome[]> => change("mineInOrder", block),
		/** Goes back to a block by number, as a reorganisation does. */
		revert: async (number: number): Promise<void> => {
			await change("revert", number);
		},
		/** Starts geth again with a new chain. */
		restart: async (changed: GethOptions): Promise<void> => {
			await change("restart", changed);
		},
		/** Stops it, and writes the record if RECORD_GETH is set. */
		async stop(): Promise<void> {
			await chain.stop();
			if (GETH === undefined || process.env.RECORD_GETH !== "1") return;
			mkdirSync(FOLDER, { recursive: true });
			const lines = [...asked.values()].map((one) => JSON.stringify(one));
			writeFileSync(file, `[\n${lines.join(",\n")}\n]\n`);
		},
	};
}

interface Question extends RpcCall {
	readonly changes: number;
}

interface Source {
	ask(question: Question): Promise<RpcAnswer>;
	/** Changes the chain, and returns the result. */
	change(question: Question): Promise<unknown>;
	stop(): Promise<void>;
}

function live(first: GethChain): Source {
	let geth = first;
	return {
		async ask({ method, params }) {
			const [outcome] = await geth.batch([{ method, params }]);
			if (outcome === undefined || outcome.ok) return { ok: true, result: outcome?.result };
			const { code, message, data } = outcome;
			return { ok: false, error: { code, message, data } };
		},
		async change({ method, params: [param] }) {
			if (method === "mine") return geth.mine(param as GethBlock);
			if (method === "mineInOrder") return mineInOrder(geth, param as GethBlock);
			if (method === "restart") {
				await geth.stop();
				geth = await startGeth(param as GethOptions);
				return null;
			}
			await geth.revert(`0x${Number(param).toString(16)}`);
			return null;
		},
		stop: () => geth.stop(),
	};
}

function replayed(file: string, keyOf: KeyOf): Source {
	const recorded = JSON.parse(readFileSync(file, "utf8")) as Recorded[];
	const known = new Map(recorded.map((one) => [JSON.stringify([one.changes, one.method, one.params]), one]));
	const find = (question: Question): Recorded => {
		const one = known.get(keyOf(question)[0]);
		if (one !== undefined) return one;
		const told = JSON.stringify(question).slice(0, 2_000);
		throw new Error(`geth was never asked this: record again with GETH=… RECORD_GETH=1. ${told}`);
	};
	return {
		async ask(question) {
			const { result, error } = find(question);
			if (error === undefined) return { ok: true, result };
			return { ok: false, error: { data: undefined, ...error } };
		},
		change: async (question) => find(question).result,
		stop: async () => {},
	};
}

/** The key of a call in the record, and its recorded parameters. Equal calls have equal keys. */
type KeyOf = (question: Question) => readonly [key: string, params: string];

function keysWithout(drawn: ReadonlySet<string>): KeyOf {
	/** Without the drawn fields, with sorted keys and lower-case hex. */
	const canonical = (value: unknown): unknown => {
		if (Array.isArray(value)) return value.map(canonical);
		if (typeof value === "string") return value.toLowerCase();
		if (typeof value !== "object" || value === null) return value;
		const fields = Object.entries(value).filter(([name]) => !drawn.has(name));
		const sorted = fields.sort(([a], [b]) => (a < b ? -1 : 1));
		return Object.fromEntries(sorted.map(([name, field]) => [name, canonical(field)]));
	};
	return ({ changes, method, params }) => {
		// As they are sent: some values make their JSON themselves.
		let text = JSON.stringify(canonical(JSON.parse(JSON.stringify(params))));
		if (text.length > MAX_TEXT) {
			const hash = createHash("sha256").update(text).digest("hex").slice(0, 24);
			text = `${text.slice(0, MAX_TEXT)}… sha256:${hash}`;
		}
		return [JSON.stringify([changes, method, text]), text];
	};
}

/** Without the fields that nothing here reads, so that a real answer equals its record. */
function trimmed(method: string, answer: RpcAnswer): RpcAnswer {
	const all = JSON.parse(JSON.stringify(answer, leaveOut)) as RpcAnswer;
	if (method !== "eth_simulateV1" || !all.ok || !Array.isArray(all.result)) return all;
	const blocks = all.result.map((block: object) =>
		Object.fromEntries(Object.entries(block).filter(([name]) => SIMULATED.has(name))),
	);
	return { ok: true, result: blocks };
}

function leaveOut(name: string, value: unknown): unknown {
	return LEFT_OUT.has(name) ? undefined : value;
}
