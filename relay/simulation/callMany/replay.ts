// The state in the middle of a block: the block, its parent and a number of transactions come in, the state after that
// many of them goes out, as the parent's and what they changed when they really ran. Never a part: what the node can't
// tell is null.

import { parseAddress, readQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { Authorization } from "../../../shared/ethereum/transaction.ts";
import type { Signer } from "../authorizations.ts";
import type { Ask, StateOverrides } from "../engines/engine.ts";
import { isObject, readHex } from "../engines/json.ts";
import { applyDiff } from "../engines/stateDiff.ts";
import { type BaseState, beaconRootWrite, historyWrite, type NodeBlock } from "./blocks.ts";

/** The changes of each transaction of a block. https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug */
const CHANGES = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };

/** The state behind the first `count` transactions of `block`, whose parent is `parent`; null where it can't be had. */
export async function stateWithin(
	block: NodeBlock,
	parent: NodeBlock,
	count: number,
	ask: Ask,
): Promise<BaseState | null> {
	const { header } = block;
	let overrides: StateOverrides = { ...historyWrite(parent.header), ...beaconRootWrite(block) };
	if (header.parentHash !== parent.header.hash) return null;
	if (count === 0) return { block: parent.header.number, overrides };
	const number = toQuantity(header.number);
	const [traces, full] = await Promise.all([
		ask({ method: "debug_traceBlockByNumber", params: [number, CHANGES] }),
		ask({ method: "eth_getBlockByNumber", params: [number, true] }),
	]);
	const signers = full.kind === "result" ? readSigners(full.value, header.hash) : null;
	const diffs = traces.kind === "result" ? readDiffs(traces.value, block.transactions) : null;
	if (signers === null || diffs === null || signers.length !== diffs.length) return null;
	for (const [i, diff] of diffs.slice(0, count).entries()) {
		const signer = signers[i];
		const next = signer === undefined ? null : applyDiff(overrides, diff, signer);
		if (next === null) return null;
		overrides = next;
	}
	return { block: parent.header.number, overrides };
}

/** What each transaction changed; null where it is not of exactly these. */
function readDiffs(value: unknown, hashes: readonly string[]): readonly unknown[] | null {
	if (!Array.isArray(value) || value.length !== hashes.length) return null;
	const diffs: unknown[] = [];
	for (const [i, one] of value.entries()) {
		if (!isObject(one) || one.error !== undefined) return null;
		// Older nodes don't say whose it is.
		if (one.txHash !== undefined && readHex(one.txHash) !== hashes[i]) return null;
		diffs.push(one.result);
	}
	return diffs;
}

function readSigners(value: unknown, hash: string): readonly Signer[] | null {
	if (!isObject(value) || readHex(value.hash) !== hash || !Array.isArray(value.transactions)) return null;
	const signers = value.transactions.map(readSigner).filter((signer) => signer !== null);
	return signers.length === value.transactions.length ? signers : null;
}

function readSigner(tx: unknown): Signer | null {
	if (!isObject(tx) || typeof tx.from !== "string") return null;
	const from = parseAddress(tx.from);
	if (from === null) return null;
	const list: readonly unknown[] = Array.isArray(tx.authorizationList) ? tx.authorizationList : [];
	const authorizationList = list.map(readAuthorization).filter((one) => one !== null);
	if (authorizationList.length !== list.length) return null;
	return { from, chainId: readQuantity(tx.chainId) ?? 0n, authorizationList };
}

function readAuthorization(value: unknown): Authorization | null {
	if (!isObject(value) || typeof value.address !== "string") return null;
	const address = parseAddress(value.address);
	const [chainId, nonce, r, s] = [value.chainId, value.nonce, value.r, value.s].map(readQuantity);
	const yParity = readQuantity(value.yParity ?? value.v);
	if (address === null || yParity === null) return null;
	if (chainId == null || nonce == null || r == null || s == null) return null;
	return { chainId, address, nonce, yParity: Number(yParity), r, s };
}
