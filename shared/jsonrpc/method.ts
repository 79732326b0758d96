// Defines JSON-RPC methods and the schemas of their parameters. The same schemas make the OpenRPC
// document (https://spec.open-rpc.org), so that it always agrees with the checks.

import { z } from "zod";
import {
	hexToBytes,
	parseAddress,
	parseHash,
	parseQuantity,
	parseSignature,
	toQuantity,
} from "../ethereum/hex.ts";
import { didYouMean } from "../nearest.ts";
import { quotable } from "./answers.ts";
import { RpcError } from "./errors.ts";

/**
 * The result of a handler that has finished its effect but must wait for its result, so that a
 * batch continues with its next call. `finish` is called at once with the remaining ms of the
 * request, and returns and throws like `handle`. It is not called for notifications.
 */
export class AnswerLater {
	readonly finish: (leftMs: number) => Promise<unknown>;
	constructor(finish: (leftMs: number) => Promise<unknown>) {
		this.finish = finish;
	}
}

/** Enough for a hash, an address or a block, and the additions of libraries. */
export const PARAMS_SIZE = 1_024;
/** A raw transaction with as many blobs as nodes accept, or a bundle of smaller ones. */
export const RAW_PARAMS_SIZE = 2 * 1024 * 1024 + PARAMS_SIZE;
/** For reads that are forwarded. Heavy ones run code, and may contain code and state overrides. */
const READ_PARAMS_SIZE = 128 * 1024;
const HEAVY_READ_PARAMS_SIZE = 1024 * 1024;

/** Maximum characters of a read's parameters as JSON, by its cost in the rate limit. */
export function readParamsSize(weight: number): number {
	return weight > 1 ? HEAVY_READ_PARAMS_SIZE : READ_PARAMS_SIZE;
}

/**
 * One positional parameter. It is optional if its schema accepts undefined; only optional ones may
 * follow it.
 */
interface Param {
	/** For errors and the OpenRPC document. */
	readonly name: string;
	readonly schema: z.ZodType;
}

/** The parsed values that a handler gets for `P`. */
type ParamValues<P extends readonly Param[]> = {
	readonly [K in keyof P]: z.output<P[K]["schema"]>;
};

/** A method as its file defines it. */
interface MethodSpec<Needs, Context, P extends readonly Param[]> {
	readonly name: string;
	/** One line for the OpenRPC document. */
	readonly summary: string;
	readonly params: P;
	/** For the OpenRPC document; results are not checked against it. */
	readonly result: z.ZodType;
	/** Cost in the rate limit. Default 1. */
	readonly weight?: number;
	/** Maximum characters of all parameters as JSON; default {@link PARAMS_SIZE}. */
	readonly maxParamsSize?: number;
	/**
	 * If true, a batch runs such calls in order. The next call begins when one has ended or
	 * returned an {@link AnswerLater}.
	 */
	readonly ordered?: boolean;
	/**
	 * If true, a call without an id gets an answer over a websocket, with id null. Published
	 * examples of subscriptions and bids omit the id. Over HTTP the call remains a notification.
	 */
	readonly answeredWithoutId?: boolean;
	/**
	 * Runs the call. `context` is the request's, `needs` are the dependencies of the method.
	 * Returns JSON values (quantities in hex, never a bigint) or an {@link AnswerLater}. Throws an
	 * RpcError for the client. Anything else that it throws is our own fault.
	 */
	handle(params: ParamValues<P>, context: Context, needs: Needs): Promise<unknown> | unknown;
}

/** A method that checks its own parameters, ready for a table. */
interface MethodDefinition<Needs, Context>
	extends Required<Omit<MethodSpec<Needs, Context, readonly Param[]>, "handle">> {
	/** How many parameters are required. */
	readonly required: number;
	/**
	 * A property, not a method, so that the compiler checks each method against the context and needs
	 * of its table.
	 */
	readonly invoke: (params: readonly unknown[], context: Context, needs: Needs) => Promise<unknown> | unknown;
}

/** A method bound to its dependencies. */
interface Method<Context> {
	readonly definition: Omit<MethodDefinition<never, Context>, "invoke">;
	/**
	 * Checks `params` and runs the method. Throws RpcError `invalidParams`, and what the method
	 * throws.
	 */
	readonly call: (params: readonly unknown[], context: Context) => Promise<unknown> | unknown;
}

export type MethodTable<Context> = ReadonlyMap<string, Method<Context>>;

/**
 * Defines a method: `defineMethod<{ pool: Pool }, CallContext>()({ name: "eth_x", params: [{ name:
 * "hash", schema: hash }], … })`. Two calls, so that `Needs` is given while the parameters' types
 * are inferred. Throws if a required parameter follows an optional one.
 */
export function defineMethod<Needs, Context>() {
	return <const P extends readonly Param[]>(
		spec: MethodSpec<Needs, Context, P>,
	): MethodDefinition<Needs, Context> => {
		const { name, summary, params, result } = spec;
		const required = countRequired(name, params);
		return {
			name,
			summary,
			params,
			result,
			weight: spec.weight ?? 1,
			maxParamsSize: spec.maxParamsSize ?? PARAMS_SIZE,
			ordered: spec.ordered ?? false,
			answeredWithoutId: spec.answeredWithoutId ?? false,
			required,
			invoke: (given, context, needs) =>
				spec.handle(checkParams(params, required, given) as ParamValues<P>, context, needs),
		};
	};
}

/** The table of `definitions`, each bound to `needs`. Throws if a name is defined twice. */
export function methodTable<Needs, Context>(
	definitions: readonly MethodDefinition<Needs, Context>[],
	needs: Needs,
): MethodTable<Context> {
	return boundTable(definitions, (definition, params, context) => definition.invoke(params, context, needs));
}

/** The table of `definitions`, each of which `run` runs. Throws if a name is defined twice. */
export function boundTable<Needs, Context>(
	definitions: readonly MethodDefinition<Needs, Context>[],
	run: (
		definition: MethodDefinition<Needs, Context>,
		params: readonly unknown[],
		context: Context,
	) => unknown,
): MethodTable<Context> {
	const table = new Map<string, Method<Context>>();
	for (const definition of definitions) {
		if (table.has(definition.name)) throw new Error(`the method ${definition.name} is defined twice`);
		table.set(definition.name, { definition, call: (params, context) => run(definition, params, context) });
	}
	return table;
}

function countRequired(method: string, params: readonly Param[]): number {
	let required = params.length;
	while (required > 0 && isOptional(params[required - 1])) required--;
	const misplaced = params.slice(0, required).find(isOptional);
	if (misplaced !== undefined)
		throw new Error(`${method}: ${misplaced.name} is optional, what follows is not`);
	return required;
}

function isOptional(param: Param | undefined): boolean {
	return param?.schema.safeParse(undefined).success === true;
}

function checkParams(params: readonly Param[], required: number, given: readonly unknown[]): unknown[] {
	if (given.length > params.length) {
		throw invalidParams(`expected at most ${params.length} (${params.map((p) => p.name).join(", ")})`);
	}
	const values: unknown[] = [];
	for (let i = 0; i < params.length; i++) {
		const param = params[i] as Param;
		// Clients pass null for optional parameters that they omit.
		const value = i >= required && given[i] === null ? undefined : given[i];
		values.push(checkParam(param.name, param.schema, value));
	}
	return values;
}

/**
 * `value` parsed by `schema`. Throws RpcError `invalidParams` with `name` and what was expected.
 */
export function checkParam<T extends z.ZodType>(name: string, schema: T, value: unknown): z.output<T> {
	const checked = schema.safeParse(value);
	if (!checked.success) throw invalidParams(describe(name, checked.error.issues));
	return checked.data;
}

function invalidParams(what: string): RpcError {
	return new RpcError("invalidParams", `invalid params: ${what}`);
}

/**
 * Names the parameter and what was expected: "bundle.txs[0]: expected a hash of 32 bytes as 0x
 * hex".
 */
function describe(name: string, issues: readonly z.core.$ZodIssue[]): string {
	const issue = closest(issues);
	if (issue === undefined) return name;
	let path = name;
	for (const key of issue.path) {
		path += typeof key === "number" ? `[${key}]` : `.${quotable(String(key))}`;
	}
	const message = issue.message.replace(
		/^(Invalid input|Invalid option|Too small|Too big|Invalid string): /,
		"",
	);
	return `${path}: ${message === "Invalid input" ? "not as expected" : message.replace(/, received .*$/, "")}`;
}

/**
 * The issue to report. In an object an unknown key comes before a missing or invalid one, since it
 * may be that key, misspelt. The unknown key ends the path. In a union the branch that matched
 * deepest into the value counts. A union's own message stays, unless an unknown key is close to a
 * key of a branch.
 */
function closest(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue | undefined {
	const first = issues[0];
	if (first === undefined) return undefined;
	const unknown = issues
		.filter((issue) => issue.code === "unrecognized_keys")
		.find(({ path }) => path.every((key, i) => key === first.path[i]));
	if (unknown !== undefined) return { ...unknown, path: [...unknown.path, unknown.keys[0] ?? ""] };
	if (first.code !== "invalid_union") return first;
	const deepest = first.errors
		.map((branch) => closest(branch))
		.filter((issue) => issue !== undefined)
		.filter((issue) => first.message === "Invalid input" || isNearlyKnown(issue))
		.sort((a, b) => b.path.length - a.path.length || Number(isNearlyKnown(b)) - Number(isNearlyKnown(a)))[0];
	return deepest === undefined ? first : { ...deepest, path: [...first.path, ...deepest.path] };
}

function isNearlyKnown({ code, message }: z.core.$ZodIssue): boolean {
	return code === "unrecognized_keys" && message !== UNKNOWN_KEY;
}

export interface OpenRpcInfo {
	readonly title: string;
	readonly version: string;
	readonly description?: string;
}

type Described = Omit<MethodDefinition<never, never>, "invoke">;

/** The OpenRPC document, as JSON values. */
export function openRpc(methods: Iterable<Described>, info: OpenRpcInfo): Record<string, unknown> {
	const described = Array.from(methods, ({ name, summary, params, required, result }) => ({
		name,
		summary,
		paramStructure: "by-position",
		params: params.map((param, i) => ({
			name: param.name,
			required: i < required,
			schema: jsonSchema(param.schema, "input"),
		})),
		result: { name: "result", schema: jsonSchema(result, "output") },
	}));
	return { openrpc: "1.3.2", info: { ...info }, methods: described };
}

/** The schema's input or output. Constraints that JSON Schema cannot express are omitted. */
function jsonSchema(schema: z.ZodType, io: "input" | "output"): Record<string, unknown> {
	const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
	return rest;
}

/**
 * A string parsed by `read`, which returns null if it is not valid. `pattern` is for the document.
 */
function readString<T>(expects: string, pattern: string, read: (text: string) => T | null) {
	return z
		.string({ error: `expected ${expects}` })
		.transform((text, context): T => {
			const value = read(text);
			if (value !== null) return value;
			context.issues.push({ code: "custom", message: `expected ${expects}`, input: text });
			return z.NEVER;
		})
		.meta({ description: expects, pattern });
}

/** A list of `min` to `max` elements. Its length is checked before any element. */
export function boundedList<T extends z.ZodType>(element: T, max: number, expected: string, min = 0) {
	return z.preprocess((value, context) => {
		if (Array.isArray(value) && value.length >= min && value.length <= max) return value;
		context.issues.push({ code: "custom", message: `expected ${expected}`, input: undefined });
		return z.NEVER;
	}, z.array(element).min(min).max(max));
}

const UNKNOWN_KEY = "unknown key";

/**
 * An object with the keys of `shape`. An unknown key is refused by its name, with the nearest known
 * one. If it were dropped silently, its sender would wrongly believe a protection to be on. `error`
 * is the message for a value that is not an object. All methods make their objects by this.
 */
export function exactObject<Shape extends z.core.$ZodLooseShape>(shape: Shape, error?: string) {
	const known = Object.keys(shape);
	return z.strictObject(shape, {
		error: (issue) =>
			issue.code === "unrecognized_keys" ? `${UNKNOWN_KEY}${didYouMean(issue.keys[0] ?? "", known)}` : error,
	});
}

/** 32 bytes, to lower-case hex. */
export const hash = readString("a hash of 32 bytes as 0x hex", "^0[xX][0-9a-fA-F]{64}$", parseHash);

/** 20 bytes, to lower-case hex. Checksums are ignored. */
export const address = readString("an address of 20 bytes as 0x hex", "^0[xX][0-9a-fA-F]{40}$", parseAddress);

/** 65 bytes (r, s and v), to lower-case hex. */
export const signature = readString(
	"a signature of 65 bytes as 0x hex",
	"^0[xX][0-9a-fA-F]{130}$",
	parseSignature,
);

const HEX_PATTERN = "^0[xX](?:[0-9a-fA-F]{2})*$";

/** Any number of bytes, to lower-case hex. */
export const hexData = readString("bytes as 0x hex", HEX_PATTERN, (text) =>
	/^0x[0-9a-f]*$/i.test(text) && text.length % 2 === 0 ? text.toLowerCase() : null,
);

/** Any number of bytes, to a buffer; `expects` describes them: "a signed transaction as 0x hex". */
export function rawBytes(expects: string) {
	return readString<Uint8Array>(expects, HEX_PATTERN, hexToBytes);
}

const QUANTITY_PATTERN = "^0[xX](?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})$";

/** At most 256 bits without leading zeros, to a bigint. */
export const quantity = readString("a 0x hex number without leading zeros", QUANTITY_PATTERN, parseQuantity);

/** A quantity below 2^53, to a number that JSON can hold. */
export const count = quantity
	.refine((value) => value <= BigInt(Number.MAX_SAFE_INTEGER), { error: "expected a number below 2^53" })
	.transform(Number);

/** Whole seconds since the epoch, as a number. */
export const seconds = z
	.int({ error: "expected whole seconds since the epoch" })
	.min(0, { error: "expected whole seconds since the epoch" });

/** The same, as a number or as 0x hex. */
export const time = z.union([seconds, count], { error: "expected whole seconds since the epoch" });

const BLOCK_TAGS = ["latest", "pending", "safe", "finalized", "earliest"] as const;
export type BlockTag = (typeof BLOCK_TAGS)[number];

const TAG_PATTERN = `^(?:${BLOCK_TAGS.join("|")})$`;
const BLOCK = "a block number as 0x hex, or one of latest, pending, safe, finalized, earliest";
const REFERENCE = `${BLOCK}, or an object with blockHash or blockNumber`;

/** A block by number, to a bigint, or by tag. */
export const blockNumberOrTag = readString(BLOCK, `${QUANTITY_PATTERN}|${TAG_PATTERN}`, (text) =>
	isTag(text) ? text : parseQuantity(text),
);

/**
 * A block by number, tag or hash (EIP-1898), in the form that nodes accept: a lower-case quantity
 * or tag, or an object with `blockHash` (and `requireCanonical`) or `blockNumber`.
 */
export const blockReference = z.union(
	[
		readString(BLOCK, `${QUANTITY_PATTERN}|${TAG_PATTERN}`, (text) =>
			isTag(text) ? text : wireQuantity(text),
		),
		exactObject({ blockHash: hash, requireCanonical: z.boolean().optional() }),
		exactObject({ blockNumber: readString(BLOCK, QUANTITY_PATTERN, wireQuantity) }),
	],
	{ error: `expected ${REFERENCE}` },
);

function isTag(text: string): text is BlockTag {
	return (BLOCK_TAGS as readonly string[]).includes(text);
}

function wireQuantity(text: string): string | null {
	const value = parseQuantity(text);
	return value === null ? null : toQuantity(value);
}
