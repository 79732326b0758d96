// All methods of the relay: how their objects treat unknown keys.

import assert from "node:assert/strict";
import { test } from "node:test";
import { METHODS } from "../../../../../relay/ingress/methods/index.ts";
import { openRpc } from "../../../../../shared/jsonrpc/method.ts";

/** The objects of a JSON Schema, each with its path. */
function objects(schema: unknown, path: string): [string, Record<string, unknown>][] {
	if (typeof schema !== "object" || schema === null) return [];
	const own = schema as Record<string, unknown>;
	const nested = Object.entries(own).flatMap(([key, one]) => objects(one, `${path}/${key}`));
	return own.type === "object" ? [[path, own], ...nested] : nested;
}

test("every object of every method refuses unknown keys", () => {
	const { methods } = openRpc(METHODS, { title: "", version: "" }) as {
		methods: { name: string; params: { name: string; schema: unknown }[] }[];
	};
	const found = methods.flatMap(({ name, params }) =>
		params.flatMap((param) => objects(param.schema, `${name} ${param.name}`)),
	);
	assert.ok(found.length > 20, `${found.length} objects`);
	const open = found.filter(([, { additionalProperties }]) => additionalProperties !== false);
	assert.deepEqual(
		open.map(([path]) => path),
		[],
	);
});
