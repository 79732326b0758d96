// Rows of broken encodings for each transaction type, with their exact answers. Every row breaks one rule in an
// otherwise valid, signed transaction.

import type { DecodeReason } from "../../../../shared/ethereum/transaction.ts";
import {
	ADDRESS,
	encode,
	FIELD_NAMES,
	type FieldName,
	type RawItem,
	type Spoiling,
	type Type,
	transactionBytes,
	verbatim,
} from "../../../support/rawTransactions.ts";

export interface Row {
	readonly name: string;
	readonly raw: Buffer;
	readonly reason: DecodeReason;
	readonly message: string;
}

const INTEGERS: Partial<Record<FieldName, number>> = {
	chainId: 32,
	nonce: 8,
	gasPrice: 32,
	maxPriorityFeePerGas: 32,
	maxFeePerGas: 32,
	gasLimit: 8,
	value: 32,
	maxFeePerBlobGas: 32,
};
const LISTS: readonly FieldName[] = ["accessList", "blobVersionedHashes", "authorizationList"];
/** A row whose bytes break a rule of the encoding: `fault` is the message behind `rlp: `. */
export function rlpRow(type: Type, name: string, spoiling: Spoiling, fault: string): Row {
	return {
		name: `type ${type}: ${name}`,
		raw: transactionBytes(type, spoiling),
		reason: "rlp",
		message: `rlp: ${fault}`,
	};
}

/** The ways to spoil an integer of at most `maxBytes` bytes. */
export function spoiledIntegers(maxBytes: number): [string, RawItem, string][] {
	const tooLong = Buffer.alloc(maxBytes + 1, 0x11);
	return [
		["zero as a byte", verbatim("00"), "leading zero"],
		["leading zero", Buffer.from([0, 5]), "leading zero"],
		["single byte with a length", verbatim("8105"), "single byte below 0x80 with a length before it"],
		["0x7f with a length", verbatim("817f"), "single byte below 0x80 with a length before it"],
		["long form of a short length", verbatim("b80411111111"), "long form of a short length"],
		["too long", tooLong, `expected at most ${maxBytes} bytes, got ${maxBytes + 1}`],
		["a list", [5n], "expected a byte string, got a list"],
		["an empty list", [], "expected a byte string, got a list"],
	];
}

export function fieldRows(type: Type): Row[] {
	return FIELD_NAMES[type].flatMap((field) => {
		const maxBytes = INTEGERS[field];
		if (maxBytes === undefined) return [];
		return spoiledIntegers(maxBytes).map(([name, item, fault]) =>
			rlpRow(type, `${field}: ${name}`, { fields: { [field]: item } }, `${field}: ${fault}`),
		);
	});
}

export function signatureFieldRows(type: Type): Row[] {
	return ([type === 0 ? "v" : "yParity", "r", "s"] as const).flatMap((field) =>
		spoiledIntegers(32).map(([name, item, fault]) =>
			rlpRow(type, `${field}: ${name}`, { signature: { [field]: item } }, `${field}: ${fault}`),
		),
	);
}

export function byteStringRows(type: Type): Row[] {
	const mayCreate = type <= 2;
	const wanted = `to: expected 20 bytes${mayCreate ? " or none" : ""}`;
	const row = (name: string, fields: Spoiling["fields"] & object, fault: string) =>
		rlpRow(type, name, { fields }, fault);
	const rows = [
		row("to of 19 bytes", { to: ADDRESS.subarray(1) }, `${wanted}, got 19`),
		row("to of 21 bytes", { to: Buffer.alloc(21, 7) }, `${wanted}, got 21`),
		row("to of one zero byte", { to: Buffer.from([0]) }, `${wanted}, got 1`),
		row("to of 32 bytes", { to: Buffer.alloc(32, 7) }, `${wanted}, got 32`),
		row("to is a list", { to: [] }, "to: expected a byte string, got a list"),
		row("data is a list", { data: [] }, "data: expected a byte string, got a list"),
		row(
			"data in long form, too short",
			{ data: verbatim(`b837${"11".repeat(55)}`) },
			"data: long form of a short length",
		),
		row(
			"data with a zero in its length",
			{ data: verbatim(`b90038${"11".repeat(56)}`) },
			"data: leading zero in its length",
		),
		row(
			"data single byte",
			{ data: verbatim("8100") },
			"data: single byte below 0x80 with a length before it",
		),
		row("data over the end", { data: verbatim("ba100000") }, "data: longer than what holds it"),
		row("data of 2^62 bytes", { data: verbatim(`bf40${"00".repeat(7)}`) }, "data: longer than what holds it"),
	];
	if (!mayCreate) rows.push(row("creation", { to: Buffer.alloc(0) }, "to: expected 20 bytes, got 0"));
	return rows;
}

export function listRows(type: Type): Row[] {
	const wrongKinds = FIELD_NAMES[type]
		.filter((field) => LISTS.includes(field))
		.map((field) =>
			rlpRow(
				type,
				`${field}: a string`,
				{ fields: { [field]: Buffer.alloc(0) } },
				`${field}: expected a list, got a byte string`,
			),
		);
	const last = type === 0 ? "v" : "yParity";
	const rows = [
		...wrongKinds,
		rlpRow(type, "without s", { signed: (list) => list.slice(0, -1) }, "s: missing"),
		rlpRow(type, "without r and s", { signed: (list) => list.slice(0, -2) }, "r: missing"),
		rlpRow(type, "unsigned", { signed: (list) => list.slice(0, -3) }, `${last}: missing`),
		rlpRow(
			type,
			"one item more",
			{ signed: (list) => [...list, 0n] },
			"transaction: more items than expected",
		),
		rlpRow(
			type,
			"one list more",
			{ signed: (list) => [...list, []] },
			"transaction: more items than expected",
		),
		rlpRow(type, "empty", { signed: () => [] }, type === 0 ? "nonce: missing" : "chainId: missing"),
	];
	const whole = transactionBytes(type);
	const body = type === 0 ? whole : whole.subarray(1);
	const withType = (bytes: Buffer) => (type === 0 ? bytes : Buffer.concat([Buffer.from([type]), bytes]));
	const name = type === 3 ? "blob transaction" : "transaction";
	const raw = (title: string, bytes: Buffer, fault: string): Row => ({
		...{ name: `type ${type}: ${title}`, raw: withType(bytes), reason: "rlp", message: `rlp: ${fault}` },
	});
	const lengthBytes = (body[0] as number) - 0xf7;
	const longer = Buffer.concat([
		Buffer.from([(body[0] as number) + 1, 0]),
		body.subarray(1, 1 + lengthBytes),
		body.subarray(1 + lengthBytes),
	]);
	return [
		...rows,
		raw("a byte behind it", Buffer.concat([body, Buffer.from([0])]), "trailing bytes"),
		raw("a list behind it", Buffer.concat([body, Buffer.from([0xc0])]), "trailing bytes"),
		raw("cut by one byte", body.subarray(0, -1), `${name}: longer than what holds it`),
		raw("zero in the list's length", longer, `${name}: leading zero in its length`),
		raw("ends inside the list's length", Buffer.from([0xf9, 0x01]), `${name}: ends inside its length`),
		raw("short list in long form", Buffer.from([0xf8, 0x01, 0x80]), `${name}: long form of a short length`),
		raw("wrapped in a string", encode(body), `${name}: expected a list, got a byte string`),
	];
}
