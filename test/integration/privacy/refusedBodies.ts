// Request bodies with a raw transaction that are refused, each for another reason: no refusal may
// quote it.

type Param = unknown;

function call(method: unknown, params: Param, more: object = {}): string {
	return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params, ...more });
}

/** `raw` with another last byte: a signature that does not recover the sender. */
function flipped(raw: string): string {
	return `${raw.slice(0, -2)}${raw.endsWith("00") ? "01" : "00"}`;
}

/** Submissions and reads that relay and boost refuse. */
export function refusedBodies(raw: string): readonly string[] {
	const params: readonly Param[] = [
		...[[raw, raw], { raw }, [{ raw }], [[raw]], [raw.slice(2)], [`${raw}0`], [`${raw}00`]],
		...[[raw.slice(0, -10)], [flipped(raw)], raw],
	];
	return [
		raw,
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["${raw}"`,
		...params.map((param) => call("eth_sendRawTransaction", param)),
		call("eth_sendRawTransactionSync", [raw, raw]),
		call("eth_sendPrivateTransaction", [{ tx: raw }]),
		call("eth_sendBundle", [{ txs: [raw, raw] }]),
		call(raw, []),
		call("eth_getTransactionByHash", [raw]),
		call("eth_cancelTransaction", [raw]),
		call("eth_getTransactionCount", [raw, "pending"]),
		call("eth_sendRawTransaction", [raw], { jsonrpc: raw }),
		call("eth_sendRawTransaction", [raw], { id: { raw } }),
		`[${call("eth_sendRawTransaction", [flipped(raw)])},${call("nope", [raw])}]`,
	];
}

/** Bundles that a relay refuses. */
export function refusedBundles(raw: string): readonly string[] {
	const unknown = `0x${"77".repeat(32)}`;
	const share = { version: "v0.1", inclusion: { block: "0x1" } };
	return [
		call("eth_sendBundle", [{ txs: [raw] }]),
		call("eth_sendBundle", [{ txs: [unknown, raw] }]),
		call("eth_sendBundle", [{ txs: [unknown, flipped(raw)] }]),
		call("eth_sendBundle", [{ txs: [], replacementUuid: raw.repeat(3) }]),
		call("eth_cancelBundle", [{ replacementUuid: [raw] }]),
		call("mev_sendBundle", [{ version: raw, body: [{ tx: raw }] }]),
		call("mev_sendBundle", [{ ...share, body: [{ tx: raw, canRevert: raw }] }]),
		call("mev_sendBundle", [{ ...share, body: [{ tx: raw.slice(0, -20) }] }]),
	];
}

/** Bids on `target` with the backrun `raw` that a relay refuses. */
export function refusedBids(raw: string, target: string): readonly string[] {
	const share = { version: "v0.1", inclusion: { block: "0x1" } };
	return [
		call("eth_sendBundle", [{ txs: [raw, target] }]),
		call("eth_sendBundle", [{ txs: [target, raw], blockNumber: raw }]),
		call("eth_sendBundle", [{ txs: [target, raw], replacementUuid: [raw] }]),
		call("eth_sendBundle", [{ txs: [target, `${raw}00`] }]),
		call("mev_sendBundle", [{ version: "v0.1", inclusion: { block: raw }, body: [{ tx: raw }] }]),
		call("mev_sendBundle", [{ ...share, body: [{ tx: raw, bundle: { raw } }] }]),
		call("mev_sendBundle", [{ ...share, body: [], privacy: { [raw]: raw } }]),
		call("eth_callMany", [{ txs: [`${raw}00`], blockNumber: "0x1", stateBlockNumber: raw }]),
		call("eth_callMany", [[{ transactions: [{ data: raw, input: "0x" }] }]]),
		call("eth_subscribe", [raw, raw]),
		call("eth_cancelBundle", [{ uuid: raw }]),
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendBundle","params":[{"txs":["${target}","${raw}"`,
	];
}
