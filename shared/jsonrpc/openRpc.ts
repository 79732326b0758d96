// The OpenRPC document of a method table: what comes in is the methods, what goes out is what rpc.discover answers.
// It is made from the schemas that check the parameters, so it cannot say anything else. https://spec.open-rpc.org

import { z } from "zod";
import type { MethodDefinition } from "./method.ts";

/** What the document says of the service. */
export interface OpenRpcInfo {
	readonly title: string;
	readonly version: string;
	readonly description?: string;
}

type Described = Omit<MethodDefinition<never, never>, "invoke">;

/** The document, as JSON values. */
export function openRpc(methods: Iterable<Described>, info: OpenRpcInfo): Record<string, unknown> {
	return { openrpc: "1.3.2", info: { ...info }, methods: Array.from(methods, describeMethod) };
}

function describeMethod({ name, summary, params, required, result }: Described): Record<string, unknown> {
	return {
		name,
		summary,
		paramStructure: "by-position",
		params: params.map((param, i) => ({
			name: param.name,
			required: i < required,
			schema: jsonSchema(param.schema, "input"),
		})),
		result: { name: "result", schema: jsonSchema(result, "output") },
	};
}

/** What the schema takes (`input`) or gives; a part that JSON Schema cannot say is left open. */
function jsonSchema(schema: z.ZodType, io: "input" | "output"): Record<string, unknown> {
	const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
	return rest;
}
