// Bytes that are no transaction, or none that can be taken, as rows with their exact answers: each breaks one rule of
// the encoding in an otherwise valid transaction. All rules are in the decoder's own table; these go through the wire.

import {
	ADDRESS,
	AUTHORIZATION,
	bareBlobBytes,
	COMMITMENTS,
	encode,
	PROOF,
	type RawItem,
	type Spoiling,
	STORAGE_KEY,
	sidecarV0,
	sidecarV1,
	type Type,
	times,
	transactionBytes as twoBlobBytes,
	VERSIONED_HASHES,
	verbatim,
} from "../../../support/rawTransactions.ts";
import { type CallRow, hex, refusal } from "./fixture.ts";

const TYPES: readonly Type[] = [0, 1, 2, 3, 4];
const TYPED: readonly Type[] = [1, 2, 3, 4];
/** The order of the curve's group. */
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** As it is spoilt, but with one blob where nothing is said of blobs: half the bytes. */
function transactionBytes(type: Type, spoiling: Spoiling = {}): Buffer {
	if (type !== 3 || spoiling.sidecar !== undefined) return twoBlobBytes(type, spoiling);
	const fields = { blobVersionedHashes: VERSIONED_HASHES.slice(0, 1), ...spoiling.fields };
	return twoBlobBytes(type, { ...spoiling, fields, sidecar: sidecarV0(1) });
}

function refused(name: string, raw: Uint8Array, detail: string, message: string): CallRow {
	const error = refusal("UNDECODABLE", message, { detail });
	return { name, method: "eth_sendRawTransaction", params: [hex(raw)], error };
}

const rlp = (name: string, raw: Uint8Array, fault: string): CallRow =>
	refused(name, raw, "rlp", `rlp: ${fault}`);

const signature = (name: string, raw: Uint8Array): CallRow =>
	refused(name, raw, "invalidSignature", "invalid transaction v, r, s values");

/** The twin of a valid signature: the other s, and the other parity. */
function twin(type: Type): Buffer {
	return transactionBytes(type, {
		signed: (list) => {
			const [v, r, s] = list.slice(-3) as [bigint, bigint, bigint];
			const other = type === 0 ? (v % 2n === 0n ? v - 1n : v + 1n) : 1n - v;
			return [...list.slice(0, -3), other, r, N - s];
		},
	});
}

function signatureRows(type: Type): CallRow[] {
	const v = type === 0 ? "v" : "yParity";
	const row = (name: string, spoilt: Spoiling["signature"] & object): CallRow =>
		signature(`type ${type}: ${name}`, transactionBytes(type, { signature: spoilt }));
	return [
		row("r of 0", { r: 0n }),
		row("s of 0", { s: 0n }),
		row("r of n", { r: N }),
		row("s just in the upper half", { s: N / 2n + 1n }),
		row("r on no point of the curve", { r: 5n }),
		row("no signature but zeros", { [v]: 0n, r: 0n, s: 0n }),
		...(type === 0 ? [2n, 26n, 29n, 34n] : [2n, 27n, 28n]).map((bad) => row(`${v} of ${bad}`, { [v]: bad })),
		signature(`type ${type}: the twin of its signature`, twin(type)),
	];
}

function fieldRows(type: Type): CallRow[] {
	const row = (name: string, fields: Spoiling["fields"] & object, fault: string): CallRow =>
		rlp(`type ${type}: ${name}`, transactionBytes(type, { fields }), fault);
	const wanted = type <= 2 ? "to: expected 20 bytes or none" : "to: expected 20 bytes";
	const long = (bytes: number): Buffer => Buffer.alloc(bytes, 0x11);
	return [
		row("nonce 0 as a byte", { nonce: verbatim("00") }, "nonce: leading zero"),
		row("nonce with a leading zero", { nonce: Buffer.from([0, 9]) }, "nonce: leading zero"),
		row("nonce of 9 bytes", { nonce: long(9) }, "nonce: expected at most 8 bytes, got 9"),
		row("gas limit of 9 bytes", { gasLimit: long(9) }, "gasLimit: expected at most 8 bytes, got 9"),
		row("value of 33 bytes", { value: long(33) }, "value: expected at most 32 bytes, got 33"),
		row("value that is a list", { value: [] }, "value: expected a byte string, got a list"),
		row("to of 19 bytes", { to: ADDRESS.subarray(1) }, `${wanted}, got 19`),
		row("to of 21 bytes", { to: long(21) }, `${wanted}, got 21`),
		row("data as a list", { data: [] }, "data: expected a byte string, got a list"),
		row(
			"data that says it is 2^62 bytes",
			{ data: verbatim(`bf40${"00".repeat(7)}`) },
			"data: longer than what holds it",
		),
		row(
			"data of a byte with a length",
			{ data: verbatim("8100") },
			"data: single byte below 0x80 with a length before it",
		),
	];
}

function shapeRows(type: Type): CallRow[] {
	const whole = transactionBytes(type);
	const body = type === 0 ? whole : whole.subarray(1);
	const kind = type === 3 ? "blob transaction" : "transaction";
	const withType = (bytes: Buffer): Buffer =>
		type === 0 ? bytes : Buffer.concat([Buffer.from([type]), bytes]);
	const row = (name: string, raw: Buffer, fault: string): CallRow => rlp(`type ${type}: ${name}`, raw, fault);
	const list = (signed: (list: RawItem[]) => RawItem): Buffer => transactionBytes(type, { signed });
	return [
		row("a byte behind it", Buffer.concat([whole, Buffer.from([0])]), "trailing bytes"),
		row("itself behind it", Buffer.concat([whole, body]), "trailing bytes"),
		row("cut by a byte", whole.subarray(0, -1), `${kind}: longer than what holds it`),
		row("half of it", whole.subarray(0, whole.length / 2), `${kind}: longer than what holds it`),
		row(
			"one item more",
			list((items) => [...items, 0n]),
			"transaction: more items than expected",
		),
		row(
			"without s",
			list((items) => items.slice(0, -1)),
			"s: missing",
		),
		row(
			"unsigned",
			list((items) => items.slice(0, -3)),
			`${type === 0 ? "v" : "yParity"}: missing`,
		),
		row("wrapped in a string", withType(encode(body)), `${kind}: expected a list, got a byte string`),
		row(
			"a short list in long form",
			withType(Buffer.from("f80180", "hex")),
			`${kind}: long form of a short length`,
		),
	];
}

function listRows(type: Type): CallRow[] {
	const row = (name: string, accessList: RawItem, fault: string): CallRow =>
		rlp(`type ${type}: access list ${name}`, transactionBytes(type, { fields: { accessList } }), fault);
	return [
		row("of an entry without keys", [[ADDRESS]], "accessList storageKeys: missing"),
		row(
			"with a key of 31 bytes",
			[[ADDRESS, [STORAGE_KEY.subarray(1)]]],
			"accessList storageKeys: expected 32 bytes, got 31",
		),
		rlp(
			`type ${type}: chain id of 33 bytes`,
			transactionBytes(type, { fields: { chainId: Buffer.alloc(33, 0x11) } }),
			"chainId: expected at most 32 bytes, got 33",
		),
	];
}

function authorizationRows(): CallRow[] {
	const row = (name: string, entry: RawItem, fault: string): CallRow =>
		rlp(`authorization ${name}`, transactionBytes(4, { fields: { authorizationList: [entry] } }), fault);
	const having = (index: number, item: RawItem): RawItem =>
		AUTHORIZATION.map((old, i) => (i === index ? item : old));
	return [
		row("that is empty", [], "authorization chainId: missing"),
		row("that is a string", ADDRESS, "authorization: expected a list, got a byte string"),
		row("without s", AUTHORIZATION.slice(0, 5), "authorization s: missing"),
		row(
			"of an address of 19 bytes",
			having(1, ADDRESS.subarray(1)),
			"authorization address: expected 20 bytes, got 19",
		),
		row(
			"of a nonce of 9 bytes",
			having(2, Buffer.alloc(9, 1)),
			"authorization nonce: expected at most 8 bytes, got 9",
		),
		row("of a yParity of 2 bytes", having(3, 256n), "authorization yParity: expected at most 1 bytes, got 2"),
	];
}

function sidecarRows(): CallRow[] {
	const bad = (name: string, spoiling: Spoiling, problem: string): CallRow =>
		refused(
			`sidecar: ${name}`,
			twoBlobBytes(3, spoiling),
			"invalidSidecar",
			`invalid blob sidecar: ${problem}`,
		);
	const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = VERSIONED_HASHES;
	const [blobs = [], commitments = [], proofs = []] = sidecarV0();
	const version2 = Buffer.concat([Buffer.from([2]), first.subarray(1)]);
	return [
		refused("sidecar: none", bareBlobBytes(), "missingBlobSidecar", "missing blob sidecar"),
		bad(
			"no blobs and no hashes",
			{ fields: { blobVersionedHashes: [] }, sidecar: [[], [], []] },
			"missing blob hashes",
		),
		bad("no blobs", { sidecar: [[], commitments, proofs] }, "0 blobs for 2 blob hashes"),
		bad("a blob too few", { sidecar: sidecarV0(1) }, "1 blobs for 2 blob hashes"),
		bad(
			"a commitment too few",
			{ sidecar: [blobs, COMMITMENTS.slice(0, 1), proofs] },
			"1 commitments for 2 blob hashes",
		),
		bad("a proof too many", { sidecar: [blobs, commitments, times(3, PROOF)] }, "3 proofs, expected 2"),
		bad("a proof a blob in the newer form", { sidecar: [1n, ...sidecarV0()] }, "2 proofs, expected 256"),
		bad("cell proofs in the older form", { sidecar: sidecarV1().slice(1) }, "256 proofs, expected 2"),
		bad("wrapper version 2", { sidecar: [2n, ...sidecarV1().slice(1)] }, "unknown wrapper version"),
		bad("wrapper version 0", { sidecar: [0n, ...sidecarV1().slice(1)] }, "unknown wrapper version"),
		bad(
			"commitments swapped",
			{ sidecar: [blobs, COMMITMENTS.toReversed(), proofs] },
			"blob hash 0 does not match its commitment",
		),
		bad(
			"hashes swapped",
			{ fields: { blobVersionedHashes: [second, first] } },
			"blob hash 0 does not match its commitment",
		),
		bad(
			"a hash of version 2",
			{ fields: { blobVersionedHashes: [version2, second] } },
			"blob hash 0 has an unknown version",
		),
		rlp(
			"sidecar: a blob of a byte less",
			transactionBytes(3, { sidecar: [[Buffer.alloc(131_071)], [], []] }),
			"blobs: expected 131072 bytes, got 131071",
		),
		rlp("sidecar: without proofs", transactionBytes(3, { sidecar: [blobs, commitments] }), "proofs: missing"),
		rlp(
			"sidecar: one item more",
			transactionBytes(3, { sidecar: [...sidecarV0(), []] }),
			"blob transaction: more items than expected",
		),
	];
}

const unsupported = (bytes: string): CallRow =>
	refused(
		`type byte 0x${bytes}`,
		Buffer.from(bytes, "hex"),
		"unsupportedType",
		"transaction type not supported",
	);

const unprotected = (v: bigint): CallRow =>
	refused(
		`legacy with v of ${v}`,
		transactionBytes(0, { signature: { v } }),
		...(["notReplayProtected", "only replay-protected (EIP-155) transactions allowed over RPC"] as const),
	);

const OTHERS: readonly CallRow[] = [
	...["00", "05", "06c0", "2ac0", "7e", "7fc0"].map(unsupported),
	...[0n, 1n, 27n, 28n].map(unprotected),
	rlp(
		"type 3 without a receiver",
		transactionBytes(3, { fields: { to: 0n } }),
		"to: expected 20 bytes, got 0",
	),
	rlp(
		"type 4 without a receiver",
		transactionBytes(4, { fields: { to: 0n } }),
		"to: expected 20 bytes, got 0",
	),
	rlp("the empty string of RLP", Buffer.from([0x80]), "transaction: expected a list, got a byte string"),
	rlp("the empty list of RLP", Buffer.from([0xc0]), "nonce: missing"),
	rlp(
		"a list that never ends",
		Buffer.from("ff7fffffffffffffff", "hex"),
		"transaction: longer than what holds it",
	),
	rlp("a length that never ends", Buffer.from("f901", "hex"), "transaction: ends inside its length"),
	rlp("lists, 30,000 levels deep", Buffer.alloc(30_000, 0xc1), "nonce: expected a byte string, got a list"),
	...[1, 2, 4].map((type) => rlp(`type ${type} and nothing`, Buffer.from([type]), "transaction: missing")),
	rlp("type 3 and nothing", Buffer.from([3]), "blob transaction: missing"),
	rlp(
		"a transaction of zeros",
		Buffer.concat([Buffer.from("f86c", "hex"), Buffer.alloc(108)]),
		"nonce: leading zero",
	),
];

export const ENCODING_ROWS: readonly CallRow[] = [
	...TYPES.flatMap((type) => [...signatureRows(type), ...fieldRows(type), ...shapeRows(type)]),
	...TYPED.flatMap(listRows),
	...authorizationRows(),
	...sidecarRows(),
	...OTHERS,
];
