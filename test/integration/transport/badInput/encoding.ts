// Bytes that are no transaction, or none that can be taken, as rows with their exact answers. The
// decoder's unit test breaks each rule of the encoding in each type; these rows show how each kind
// of fault is answered to a client.

import {
	ADDRESS,
	AUTHORIZATION,
	bareBlobBytes,
	COMMITMENTS,
	encode,
	type RawItem,
	type Spoiling,
	STORAGE_KEY,
	sidecarV0,
	sidecarV1,
	type Type,
	transactionBytes as twoBlobBytes,
	VERSIONED_HASHES,
	verbatim,
} from "../../../support/rawTransactions.ts";
import { type CallRow, hex, refusal } from "./fixture.ts";

const TYPES: readonly Type[] = [0, 1, 2, 3, 4];
/** The order of the curve's group. */
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** A transaction that is spoilt, with one blob where nothing is said of blobs: half the bytes. */
function transactionBytes(type: Type, spoiling: Spoiling = {}): Buffer {
	if (type !== 3 || spoiling.sidecar !== undefined) return twoBlobBytes(type, spoiling);
	const fields = { blobVersionedHashes: VERSIONED_HASHES.slice(0, 1), ...spoiling.fields };
	return twoBlobBytes(type, { ...spoiling, fields, sidecar: sidecarV0(1) });
}

/** The same signature with the other s and the other parity, as anybody can make it. */
function twin(type: Type): Buffer {
	return transactionBytes(type, {
		signed: (list) => {
			const [v, r, s] = list.slice(-3) as [bigint, bigint, bigint];
			const other = type === 0 ? (v % 2n === 0n ? v - 1n : v + 1n) : 1n - v;
			return [...list.slice(0, -3), other, r, N - s];
		},
	});
}

type Row = readonly [name: string, raw: Uint8Array, fault: string];
const bytes = (text: string): Buffer => Buffer.from(text, "hex");
const long = (length: number): Buffer => Buffer.alloc(length, 0x11);
const spoilt = (type: Type, fields: Spoiling["fields"] & object): Buffer =>
	transactionBytes(type, { fields });
const listed = (type: Type, signed: (list: RawItem[]) => RawItem): Buffer =>
	transactionBytes(type, { signed });

function rlpRows(type: Type): Row[] {
	const whole = transactionBytes(type);
	const kind = type === 3 ? "blob transaction" : "transaction";
	const to = type <= 2 ? "to: expected 20 bytes or none, got 19" : "to: expected 20 bytes, got 19";
	const unsigned = `${type === 0 ? "v" : "yParity"}: missing`;
	const rows: readonly Row[] = [
		["nonce 0 as a byte", spoilt(type, { nonce: verbatim("00") }), "nonce: leading zero"],
		["nonce of 9 bytes", spoilt(type, { nonce: long(9) }), "nonce: expected at most 8 bytes, got 9"],
		["value of a list", spoilt(type, { value: [] }), "value: expected a byte string, got a list"],
		["to of 19 bytes", spoilt(type, { to: ADDRESS.subarray(1) }), to],
		["a byte behind it", Buffer.concat([whole, bytes("00")]), "trailing bytes"],
		["half of it", whole.subarray(0, whole.length / 2), `${kind}: longer than what holds it`],
		["an item more", listed(type, (list) => [...list, 0n]), "transaction: more items than expected"],
		["unsigned", listed(type, (list) => list.slice(0, -3)), unsigned],
	];
	return rows.map(([name, raw, fault]) => [`type ${type}: ${name}`, raw, fault]);
}

const NO_LIST = "expected a list, got a byte string";
const RLP: readonly Row[] = [
	...TYPES.flatMap(rlpRows),
	["to of none in type 3", spoilt(3, { to: 0n }), "to: expected 20 bytes, got 0"],
	["to of none in type 4", spoilt(4, { to: 0n }), "to: expected 20 bytes, got 0"],
	[
		"data that says it is 2^62 bytes",
		spoilt(2, { data: verbatim(`bf40${"00".repeat(7)}`) }),
		"data: longer than what holds it",
	],
	["a chain id of 33 bytes", spoilt(2, { chainId: long(33) }), "chainId: expected at most 32 bytes, got 33"],
	["an access without keys", spoilt(2, { accessList: [[ADDRESS]] }), "accessList storageKeys: missing"],
	[
		"a key of 31 bytes",
		spoilt(1, { accessList: [[ADDRESS, [STORAGE_KEY.subarray(1)]]] }),
		"accessList storageKeys: expected 32 bytes, got 31",
	],
	["an empty authorization", spoilt(4, { authorizationList: [[]] }), "authorization chainId: missing"],
	[
		"an authorization without s",
		spoilt(4, { authorizationList: [AUTHORIZATION.slice(0, 5)] }),
		"authorization s: missing",
	],
	[
		"a blob of a byte less",
		transactionBytes(3, { sidecar: [[Buffer.alloc(131_071)], [], []] }),
		"blobs: expected 131072 bytes, got 131071",
	],
	["a sidecar without proofs", transactionBytes(3, { sidecar: sidecarV0().slice(0, 2) }), "proofs: missing"],
	["a transaction in a string", encode(transactionBytes(0)), `transaction: ${NO_LIST}`],
	["the empty string of RLP", bytes("80"), `transaction: ${NO_LIST}`],
	["the empty list of RLP", bytes("c0"), "nonce: missing"],
	["a short list in long form", bytes("f80180"), "transaction: long form of a short length"],
	["a list that never ends", bytes("ff7fffffffffffffff"), "transaction: longer than what holds it"],
	["a length that never ends", bytes("f901"), "transaction: ends inside its length"],
	["lists, 30,000 levels deep", Buffer.alloc(30_000, 0xc1), "nonce: expected a byte string, got a list"],
	["type 2 and nothing", bytes("02"), "transaction: missing"],
	["type 3 and nothing", bytes("03"), "blob transaction: missing"],
	["zeros", Buffer.concat([bytes("f86c"), Buffer.alloc(108)]), "nonce: leading zero"],
];

const SIGNATURES: readonly (readonly [name: string, raw: Uint8Array])[] = TYPES.flatMap((type) => [
	[`type ${type}: s of 0`, transactionBytes(type, { signature: { s: 0n } })],
	[`type ${type}: r on no point of the curve`, transactionBytes(type, { signature: { r: 5n } })],
	[
		`type ${type}: a parity of 2`,
		transactionBytes(type, { signature: { [type === 0 ? "v" : "yParity"]: 2n } }),
	],
	[`type ${type}: the twin of its signature`, twin(type)],
]);

const [blobs = [], , proofs = []] = sidecarV0();
const SIDECARS: readonly (readonly [name: string, spoiling: Spoiling, problem: string])[] = [
	[
		"none, and no hashes",
		{ fields: { blobVersionedHashes: [] }, sidecar: [[], [], []] },
		"missing blob hashes",
	],
	["a blob too few", { sidecar: sidecarV0(1) }, "1 blobs for 2 blob hashes"],
	["no commitments", { sidecar: [blobs, [], proofs] }, "0 commitments for 2 blob hashes"],
	["cell proofs in the older form", { sidecar: sidecarV1().slice(1) }, "256 proofs, expected 2"],
	["wrapper version 2", { sidecar: [2n, ...sidecarV1().slice(1)] }, "unknown wrapper version"],
	[
		"commitments swapped",
		{ sidecar: [blobs, COMMITMENTS.toReversed(), proofs] },
		"blob hash 0 does not match its commitment",
	],
	[
		"a hash of version 2",
		{
			fields: {
				blobVersionedHashes: VERSIONED_HASHES.map((hash) => Buffer.concat([bytes("02"), hash.subarray(1)])),
			},
		},
		"blob hash 0 has an unknown version",
	],
];

function refused(name: string, raw: Uint8Array, detail: string, message: string): CallRow {
	const error = refusal("UNDECODABLE", message, { detail });
	return { name, method: "eth_sendRawTransaction", params: [hex(raw)], error };
}

export const ENCODING_ROWS: readonly CallRow[] = [
	...RLP.map(([name, raw, fault]) => refused(name, raw, "rlp", `rlp: ${fault}`)),
	...SIGNATURES.map(([name, raw]) =>
		refused(name, raw, "invalidSignature", "invalid transaction v, r, s values"),
	),
	...SIDECARS.map(([name, spoiling, problem]) =>
		refused(
			`sidecar: ${name}`,
			twoBlobBytes(3, spoiling),
			"invalidSidecar",
			`invalid blob sidecar: ${problem}`,
		),
	),
	refused("sidecar: none", bareBlobBytes(), "missingBlobSidecar", "missing blob sidecar"),
	...["00", "05", "06c0", "7e", "7fc0"].map((text) =>
		refused(`type byte 0x${text}`, bytes(text), "unsupportedType", "transaction type not supported"),
	),
	...[0n, 1n, 27n, 28n].map((v) =>
		refused(
			`legacy with v of ${v}`,
			transactionBytes(0, { signature: { v } }),
			"notReplayProtected",
			"only replay-protected (EIP-155) transactions allowed over RPC",
		),
	),
];
