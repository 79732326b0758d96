// Whose address is believed, and in which form.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	addressReader,
	clientOf,
	normalAddress,
	vouchedSigner,
} from "../../../../shared/http/callContext.ts";

const SECRET = "s3cret";

interface Row {
	readonly why: string;
	readonly trustProxy: number;
	readonly headers?: Record<string, string>;
	readonly socket?: string | undefined;
	readonly address: string;
	readonly vouched?: boolean;
}

const ROWS: readonly Row[] = [
	{ why: "the connection alone", trustProxy: 0, address: "10.0.0.1" },
	{ why: "no proxy trusted", trustProxy: 0, headers: { "x-forwarded-for": "1.1.1.1" }, address: "10.0.0.1" },
	{
		why: "one proxy, one entry",
		trustProxy: 1,
		headers: { "x-forwarded-for": "1.1.1.1" },
		address: "1.1.1.1",
	},
	{
		why: "one proxy: the last entry, whatever the client wrote before it",
		trustProxy: 1,
		headers: { "x-forwarded-for": "9.9.9.9, 1.1.1.1" },
		address: "1.1.1.1",
	},
	{
		why: "two proxies: the last but one",
		trustProxy: 2,
		headers: { "x-forwarded-for": "9.9.9.9,1.1.1.1 , 2.2.2.2" },
		address: "1.1.1.1",
	},
	{ why: "too few entries", trustProxy: 2, headers: { "x-forwarded-for": "1.1.1.1" }, address: "10.0.0.1" },
	{ why: "no header", trustProxy: 1, address: "10.0.0.1" },
	{
		why: "an entry that is none",
		trustProxy: 1,
		headers: { "x-forwarded-for": "unknown" },
		address: "10.0.0.1",
	},
	{ why: "an empty entry", trustProxy: 1, headers: { "x-forwarded-for": "1.1.1.1," }, address: "10.0.0.1" },
	{ why: "a port", trustProxy: 1, headers: { "x-forwarded-for": "1.1.1.1:5555" }, address: "1.1.1.1" },
	{ why: "IPv6", trustProxy: 1, headers: { "x-forwarded-for": "2001:DB8::0001" }, address: "2001:db8::1" },
	{
		why: "IPv6 with port",
		trustProxy: 1,
		headers: { "x-forwarded-for": "[2001:db8::1]:443" },
		address: "2001:db8::1",
	},
	{ why: "a mapped connection", trustProxy: 0, socket: "::ffff:192.0.2.7", address: "192.0.2.7" },
	{ why: "an IPv6 connection", trustProxy: 0, socket: "::1", address: "::1" },
	{ why: "a zone", trustProxy: 0, socket: "fe80::1%eth0", address: "fe80::1" },
	{ why: "a connection that is gone", trustProxy: 0, socket: undefined, address: "unknown" },
	{
		why: "the secret with a single address",
		trustProxy: 0,
		headers: { "x-forwarded-for": "1.1.1.1", "x-boost-auth": SECRET },
		address: "1.1.1.1",
		vouched: true,
	},
	{
		why: "a wrong secret",
		trustProxy: 0,
		headers: { "x-forwarded-for": "1.1.1.1", "x-boost-auth": "s3creT" },
		address: "10.0.0.1",
	},
	{
		why: "an empty secret",
		trustProxy: 0,
		headers: { "x-forwarded-for": "1.1.1.1", "x-boost-auth": "" },
		address: "10.0.0.1",
	},
	{
		why: "the secret with a list that nobody appended to",
		trustProxy: 0,
		headers: { "x-forwarded-for": "9.9.9.9, 1.1.1.1", "x-boost-auth": SECRET },
		address: "10.0.0.1",
	},
	{
		why: "the secret through one proxy, which appended the sender's own address",
		trustProxy: 1,
		headers: { "x-forwarded-for": "1.1.1.1, 5.5.5.5", "x-boost-auth": SECRET },
		address: "1.1.1.1",
		vouched: true,
	},
	{
		why: "the secret past the proxy",
		trustProxy: 1,
		headers: { "x-forwarded-for": "1.1.1.1", "x-boost-auth": SECRET },
		address: "1.1.1.1",
		vouched: true,
	},
	{
		why: "the secret with no address",
		trustProxy: 0,
		headers: { "x-forwarded-for": "nobody", "x-boost-auth": SECRET },
		address: "10.0.0.1",
	},
	{ why: "the secret alone", trustProxy: 0, headers: { "x-boost-auth": SECRET }, address: "10.0.0.1" },
];

for (const { why, trustProxy, headers = {}, address, vouched = false, ...rest } of ROWS) {
	test(`address: ${why}`, () => {
		const socket = "socket" in rest ? rest.socket : "10.0.0.1";
		const read = addressReader({ trustProxy, boostSecret: SECRET });
		assert.deepEqual(read(headers, socket), { address, vouched });
	});
}

test("without a secret of our own nobody can know it", () => {
	for (const boostSecret of [undefined, ""]) {
		const read = addressReader({ trustProxy: 0, ...(boostSecret === undefined ? {} : { boostSecret }) });
		const headers = { "x-forwarded-for": "1.1.1.1", "x-boost-auth": "" };
		assert.deepEqual(read(headers, "10.0.0.1"), { address: "10.0.0.1", vouched: false });
	}
});

test("addresses have one form", () => {
	const rows: [string, string | undefined][] = [
		["1.2.3.4", "1.2.3.4"],
		[" 1.2.3.4 ", "1.2.3.4"],
		["::FFFF:1.2.3.4", "1.2.3.4"],
		["::ffff:102:304", "1.2.3.4"],
		["0:0:0:0:0:ffff:0102:0304", "1.2.3.4"],
		["2001:0DB8:0:0:0:0:0:1", "2001:db8::1"],
		["[::1]", "::1"],
		["::", "::"],
		["1.2.3", undefined],
		["1.2.3.256", undefined],
		["01.2.3.4", undefined],
		["", undefined],
		["localhost", undefined],
		["[1.2.3.4", undefined],
		["1.2.3.4:x", undefined],
		["2001:db8::1::", undefined],
	];
	for (const [given, made] of rows) assert.equal(normalAddress(given), made, given);
});

test("one network is one client: IPv4 by address, IPv6 by its first 56 bits", () => {
	const rows: [string, string][] = [
		["1.2.3.4", "1.2.3.4"],
		["unknown", "unknown"],
		["2001:db8:1:2:3:4:5:6", "2001:db8:1:0::/56"],
		["2001:db8:1:2ff::6", "2001:db8:1:200::/56"],
		["2001:db8::6", "2001:db8:0:0::/56"],
		["2001:db8:0:ff:1::", "2001:db8:0:0::/56"],
		["::1", "0:0:0:0::/56"],
		["::", "0:0:0:0::/56"],
		["1::", "1:0:0:0::/56"],
	];
	for (const [address, network] of rows) assert.equal(clientOf(address), network);
});

test("a signer is believed of who vouches for the client, and of nobody else", () => {
	const signer = `0x${"Ab".repeat(20)}`;
	const rows: [string | string[] | undefined, boolean, string | null][] = [
		[signer, true, signer.toLowerCase()],
		[signer, false, null],
		[undefined, true, null],
		["", true, null],
		[signer.slice(0, -1), true, null],
		// Of two such headers Node makes one text, which is no address.
		[`${signer}, ${signer}`, true, null],
		[[signer], true, null],
	];
	for (const [header, vouched, named] of rows) {
		const headers = header === undefined ? {} : { "x-boost-signer": header };
		assert.equal(vouchedSigner(headers, vouched), named, `${header} ${vouched}`);
	}
});
