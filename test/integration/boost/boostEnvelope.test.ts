// The JSON-RPC envelope as clients really write it, at the relay and through boost alike: ids of
// any number, params that are null, batches of a thousand calls, and what a fallback written in
// JavaScript makes of them.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { FetchRequest, JsonRpcProvider } from "ethers";
import { createPublicClient, http } from "viem";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import { type RecordingFallback, startRecordingFallback } from "../../support/upstreams.ts";
import { Wire, type WireResponse } from "../transport/badInput/wire.ts";

interface Answered {
	readonly id: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
}

let fixture: BoostFixture;
/** Reads and writes JSON as JavaScript does, so it rounds ids. */
let recorder: RecordingFallback;
/** Has only the recorder; `plain` sends it no batches. */
let rounding: BoostClient;
let plain: BoostClient;
let relay: Wire;
let doors: readonly (readonly [name: string, send: (body: string) => Promise<WireResponse>])[];
let clients = 0;
before(async () => {
	recorder = await startRecordingFallback();
	fixture = await startBoostFixture({
		system: { env: { TRUST_PROXY: "1", RATE_LIMIT_RPS: "100" } },
		boost: { TRUST_PROXY: "1", RATE_LIMIT_RPS: "100", PROBE_INTERVAL_MS: "1000" },
		unwired: true,
	});
	const node = fixture.system.chain.url;
	const env = { FALLBACK_URL: recorder.url, ETH_RPC_URL: node };
	rounding = await fixture.startBoost({ env: { ...env, FALLBACK_DIALECT: "mevblocker" } });
	plain = await fixture.startBoost({ env: { ...env, FALLBACK_DIALECT: "plain" } });
	for (const boost of [rounding, plain]) await boost.force("open");
	relay = new Wire(Number(new URL(fixture.system.client.url).port));
	doors = [
		["relay", (body) => relay.send({ path: "/fast", headers: client(), body })],
		["boost", (body) => fixture.boost.raw({ path: "/fast", headers: client(), body })],
		["boost before a fallback in JavaScript", (body) => rounding.raw({ headers: client(), body })],
		["boost before a fallback without batches", (body) => plain.raw({ headers: client(), body })],
	];
});
after(async () => {
	relay?.close();
	await fixture?.stop();
	await recorder?.stop();
});
beforeEach(() => recorder.reset());

/** Somebody who was not here before, and has used nothing of his limit. */
function client(): Readonly<Record<string, string>> {
	clients += 1;
	return { "x-forwarded-for": `198.51.${Math.floor(clients / 250)}.${1 + (clients % 250)}` };
}

/**
 * A little less than a client's limit: boost gives what refills to the message behind, which may
 * reach the relay first.
 */
const LARGE = 990;
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
const call = (id: string, method = "eth_chainId", params = "[]") =>
	`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const CHAIN = '"result":"0x7a69"}';
const success = (id: string) => `{"jsonrpc":"2.0","id":${id},${CHAIN}`;
/** The texts of the ids in an answer of ours. */
const idsOf = (body: string) =>
	[...body.matchAll(/"jsonrpc":"2.0","id":("(?:[^"\\]|\\.)*"|[^,]*)/g)].map(([, id]) => id);
const parsed = ({ body }: WireResponse) => JSON.parse(body) as readonly Answered[];

/** The time in nanoseconds, as bots use it: all of these are one number to JavaScript. */
const CLOSE = ["1764121515000000001", "1764121515000000002", "1764121515000000003"];
const IDS = [
	...["7", "0", "-1", '"7"', "1.0", "1.50", "-0", "1e3", "1E+3", "0.1", "9007199254740993", "1e400"],
	...["12345678901234567890", "99999999999999999999999999999999999999", "-12345678901234567890", ...CLOSE],
];

test("an id comes back to the digit, alone and in a batch", async () => {
	for (const [name, send] of doors) {
		for (const id of IDS) assert.equal((await send(call(id))).body, success(id), `${name}: ${id}`);
		const batch = await send(`[${IDS.map((id) => call(id)).join(",")}]`);
		assert.deepEqual(idsOf(batch.body), IDS, name);
		assert.equal(batch.body, `[${IDS.map(success).join(",")}]`, name);
	}
});

test("of whatever else looks like an id nothing is taken for it", async () => {
	const id = "12345678901234567890";
	const rows = [
		[`{"method":"eth_chainId","params":[],"id" : ${id} }`, id],
		[`{"id":1,"method":"eth_chainId","\\u0069d":${id}}`, id],
		[`{"\\u0069\\u0064":${id},"method":"eth_chainId"}`, id],
		[`{"id":${id},"method":"eth_chainId","id":7.0}`, "7.0"],
		[`{"more":{"id":7},"id":${id},"method":"eth_chainId","last":[{"id":8}]}`, id],
		[`{"more":"\\"id\\":7,","id":${id},"method":"eth_chainId","last":"}],\\\\"}`, id],
		[`{"é":"😀","id":${id},"method":"eth_chainId"}`, id],
		[`{"xid":7,"id2":7,"id":${id},"method":"eth_chainId"}`, id],
		[`{"__proto__":{"id":7},"id":${id},"method":"eth_chainId"}`, id],
	] as const;
	for (const [name, send] of doors) {
		for (const [body, own] of rows) {
			assert.equal((await send(body)).body, success(own), `${name}: ${body}`);
			const batch = await send(`[ ${body} , ${call("1.0")} ]`);
			assert.equal(batch.body, `[${success(own)},${success("1.0")}]`, `${name}: ${body} in a batch`);
		}
	}
});

test("what a client may forget is not sent to a fallback, which may forgive nothing", async () => {
	const rows = [
		'{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":null}',
		'{"id":1,"method":"eth_gasPrice","params":[]}',
		'{"jsonrpc":"2.0","id":12345678901234567890,"method":"eth_gasPrice"}',
	];
	for (const body of rows) {
		await rounding.raw({ headers: client(), body });
		await rounding.raw({ headers: client(), body: `[${body}]` });
	}
	const sent = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] });
	for (const { body } of recorder.posts) {
		assert.equal(body.replace(/^\[|\]$/g, "").replace(/"id":\d\b/, '"id":1'), sent);
	}
	assert.equal(recorder.posts.length, 2 * rows.length);
});

test("calls that share an id, or ids that round alike, are not taken for one another", async () => {
	const height = () => fixture.boost.result("eth_blockNumber", [], { headers: client() });
	const before = await height();
	const groups = [["7", "7", "7"], ["null", "null", "null"], ['"7"', '"7"', "7"], CLOSE] as const;
	for (const [name, send] of doors.slice(0, 2)) {
		for (const [a, b, c] of groups) {
			const reads = [call(a, "eth_blockNumber"), call(b, "eth_chainId"), call(c, "eth_gasPrice")];
			for (const more of [[], [call("1", "eth_accounts")]]) {
				const reply = await send(`[${[...reads, ...more].join(",")}]`);
				assert.deepEqual(idsOf(reply.body).slice(0, 3), [a, b, c], name);
				const results = parsed(reply).map(({ result }) => result);
				assert.deepEqual(results.slice(0, 2), [before, "0x7a69"], `${name}: ${a}`);
				assert.notEqual(results[2], before, `${name}: ${a}`);
			}
		}
	}
	assert.equal(await height(), before, "nobody else's height is made of another call's answer");
});

test("params that are null are none", async () => {
	for (const [name, send] of doors) {
		const body = call("1", "eth_chainId", "null");
		assert.equal((await send(body)).body, success("1"), name);
		assert.equal((await send(`[${body},${body}]`)).body, `[${success("1")},${success("1")}]`, name);
	}
});

test("whatever is refused has its id", async () => {
	const deep = `${"[".repeat(100)}${"]".repeat(100)}`;
	const id = "12345678901234567890";
	const rows: readonly (readonly [string, number])[] = [
		[`{"id":${id}}`, -32600],
		[`{"jsonrpc":"1.0","id":${id},"method":"eth_chainId"}`, -32600],
		[call(id, "eth_chainId", "{}"), -32602],
		[call(id, "eth_chainId", deep), -32602],
		[call(id, "eth_chainId", `[${"0,".repeat(6_000)}0]`), -32600],
		[call(id, "eth_getBalance", `["${"x".repeat(200_000)}"]`), -32602],
		[call(id, "eth_sendRawTransaction", '["0x"]'), -32000],
		[call(id, "eth_sendTransaction", "[{}]"), -32601],
	];
	for (const [name, send] of doors) {
		for (const [body, code] of rows) {
			const alone = await send(body);
			assert.match(alone.body, new RegExp(`^{"jsonrpc":"2.0","id":${id},"error":{"code":${code},`), name);
			const batch = await send(`[${call("1")},${body},${call("2")}]`);
			assert.deepEqual(idsOf(batch.body), ["1", id, "2"], `${name}: ${body.slice(0, 80)}`);
			const codes = parsed(batch).map(({ error }) => error?.code);
			assert.deepEqual(codes, [undefined, code, undefined], `${name}: ${body.slice(0, 80)}`);
		}
	}
});

describe("batches", () => {
	test("a thousand light reads pass for a client who is new, in their order", async () => {
		const address = `0x${"ab".repeat(20)}`;
		for (const [name, send] of doors.slice(0, 2)) {
			const body = `[${numbers(1_000)
				.map((i) => call(`${i}.0`, "eth_getBalance", `["${address}","latest"]`))
				.join(",")}]`;
			const reply = await send(body);
			assert.equal(reply.status, 200, name);
			assert.deepEqual(
				idsOf(reply.body),
				numbers(1_000).map((i) => `${i}.0`),
				name,
			);
			assert.ok(
				parsed(reply).every(({ result }) => result === "0x0"),
				name,
			);
			assert.equal(reply.headers["x-boost-attempts"], name === "relay" ? undefined : "1", name);
		}
	});

	test("viem's own batches, and ethers' too, are served", async () => {
		// The libraries take a millisecond for each; their default is a thousand.
		const count = sized(100, 1_000);
		const address = `0x${"ab".repeat(20)}` as const;
		for (const url of [fixture.system.client.url, fixture.boost.url]) {
			const batch = { batchSize: count, wait: 50 };
			const viem = createPublicClient({
				transport: http(url, { batch, fetchOptions: { headers: client() } }),
			});
			const balances = await Promise.all(numbers(count).map(() => viem.getBalance({ address })));
			assert.deepEqual([...new Set(balances)], [0n], url);
			const request = new FetchRequest(url);
			for (const [name, value] of Object.entries(client())) request.setHeader(name, value);
			const ethers = new JsonRpcProvider(request, 31_337, { staticNetwork: true, batchMaxCount: count });
			const counts = await Promise.all(numbers(count / 2).map((i) => ethers.getStorage(address, i)));
			assert.equal(new Set(counts).size, 1, url);
			ethers.destroy();
		}
	});

	test("a batch is not too large for its values, only a call is", async () => {
		const word = `0x${"ab".repeat(32)}`;
		const list = (count: number, text: string) => `[${Array(count).fill(`"${text}"`).join(",")}]`;
		const filter = `[{"fromBlock":"0x0","toBlock":"0x0","address":${list(20, word.slice(0, 42))},"topics":[${list(3, word)},null,${list(3, word)}]}]`;
		const diff = numbers(40)
			.map((i) => `"0x${i.toString(16).padStart(64, "0")}":"${word}"`)
			.join(",");
		const override = `[{"to":"${word.slice(0, 42)}","data":"0x"},"latest",{"${word.slice(0, 42)}":{"stateDiff":{${diff}}}}]`;
		for (const [name, send] of doors.slice(0, 2)) {
			const logs = numbers(1_000).map((i) => call(String(i), "eth_getLogs", filter));
			const calls = numbers(200).map((i) => call(String(i), "eth_call", override));
			for (const entries of [logs, calls]) {
				const reply = await send(`[${entries.join(",")}]`);
				assert.equal(reply.status, 200, name);
				const answers = parsed(reply);
				assert.deepEqual(
					answers.map(({ id }) => id),
					numbers(entries.length),
					name,
				);
				const errors = answers.filter(({ error }) => error !== undefined).map(({ error }) => error?.code);
				assert.deepEqual([...new Set(errors)], [-32005], `${name}: ${JSON.stringify(answers[0])}`);
				// A second or two may pass on a busy machine, each of which pays for ten.
				const served = answers.length - errors.length;
				assert.ok(served >= 100 && served < 160, `${name}: ${served} served`);
			}
		}
	});

	test("calls over the limit have errors of their own, with their ids; the others are one request", async () => {
		for (const [name, send] of doors.slice(0, 3)) {
			const light = numbers(200).map((i) => call(`${CLOSE[0]}${i}`));
			const heavy = numbers(300).map((i) => call(`"${i}"`, "eth_call", '[{"data":"0x"},"latest"]'));
			const reply = await send(`[${[...heavy, ...light].join(",")},{"method":"eth_chainId"}]`);
			assert.equal(reply.status, 200, name);
			assert.deepEqual(
				idsOf(reply.body),
				[...heavy, ...light].flatMap((text) => idsOf(text)),
				name,
			);
			const limited = parsed(reply).filter(({ error }) => error?.code === -32005);
			// A call that is refused takes nothing: light ones behind it may be served.
			assert.ok(limited.length > 200 && limited.length <= 400, `${name}: ${limited.length}`);
			for (const { error } of limited) assert.match(error?.message ?? "", /: try again in \d+ s$/, name);
			assert.equal(reply.headers["x-boost-attempts"], name === "relay" ? undefined : "1", name);
		}
	});

	test("a fallback that takes no batches gets the calls one by one, all of them", async () => {
		const reply = await plain.raw({
			headers: client(),
			body: `[${numbers(100)
				.map((i) => call(`${i}.0`, i % 2 ? "eth_chainId" : "eth_blockNumber"))
				.join(",")}]`,
		});
		assert.equal(reply.status, 200);
		assert.deepEqual(
			idsOf(reply.body),
			numbers(100).map((i) => `${i}.0`),
		);
		assert.ok(parsed(reply).every(({ result }, i) => result === (i % 2 ? "0x7a69" : "0x0")));
	});

	test("a fallback that refuses the batch as a whole has refused each call of it", async () => {
		recorder.answerWith(() => {
			const text = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}';
			return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
		});
		const reply = await rounding.raw({
			headers: client(),
			body: `[${CLOSE.map((id) => call(id)).join(",")}]`,
		});
		assert.deepEqual(idsOf(reply.body), CLOSE);
		assert.ok(parsed(reply).every(({ error }) => error?.message === "batch too large"));
	});

	test("answers in another order come back in that of the calls", async () => {
		recorder.answerWith(({ body }) => {
			const calls = JSON.parse(body) as { id: number }[];
			const answers = calls.map(({ id }) => ({ result: { place: id, id: 7 }, id, jsonrpc: "2.0" }));
			const text = JSON.stringify(answers.reverse(), null, 1);
			return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
		});
		const reply = await rounding.raw({
			headers: client(),
			body: `[${CLOSE.map((id) => call(id, "eth_syncing")).join(",")}]`,
		});
		const found = [...reply.body.matchAll(/"place": (\d),\s*"id": 7\s*},\s*"id": (\d+)/g)];
		assert.deepEqual(
			found.map(([, place, id]) => [Number(place), id]),
			CLOSE.map((id, i) => [i, id]),
		);
	});
});

describe("over a websocket", () => {
	const paths = ["/fast", "/fullprivacy"];
	const urls = () =>
		[fixture.system.client.url, fixture.boost.url].flatMap((url) =>
			paths.map((path) => `${url.replace("http", "ws")}${path}`),
		);
	const hash = `0x${"ab".repeat(32)}`;
	/** Calls without an id, and how the answer of each goes on behind its id. */
	const ANSWERED: readonly (readonly [string, RegExp])[] = [
		['"eth_subscribe","params":["newHeads"]', /^"result":"0x/],
		['"eth_subscribe","params":["nope"]', /^"error":{"code":-32602/],
		['"eth_subscribe","params":{}', /^"error":{"code":-32602/],
		['"eth_unsubscribe","params":["0x1"]', /^"result":false/],
		[`"eth_sendBundle","params":[{"txs":["${hash}","0x02"],"blockNumber":"0x1"}]`, /^"error":{"code":-32/],
		['"eth_cancelBundle","params":[{"replacementUuid":"a"}]', /^"result":200/],
		['"mev_sendBundle","params":[{}]', /^"error":{"code":-32602/],
	];
	const withoutId = (rest: string) => `{"jsonrpc":"2.0","method":${rest}}`;

	/**
	 * The `count` answers to the messages of `sent`, and what else has come when a later call is
	 * answered.
	 */
	async function answersTo(url: string, sent: string | readonly string[], count = 1): Promise<string[]> {
		const ws = await WsClient.open(url, { headers: client() });
		const texts: string[] = [];
		// By events: the loop of until pauses for longer than all of this takes.
		const come = (isDone: () => boolean): Promise<void> =>
			new Promise((resolve, reject) => {
				const look = (): void => void (isDone() && resolve());
				ws.socket.on("message", look);
				ws.socket.once("close", () => reject(new Error(`closed after ${String(sent).slice(0, 200)}`)));
				look();
			});
		ws.socket.on("message", (data) => {
			const text = String(data);
			if (!text.includes('"method":"eth_subscription"')) texts.push(text);
		});
		for (const message of [sent].flat()) ws.send(message);
		await come(() => texts.length >= count);
		ws.send(call('"last"', "eth_unsubscribe", '["0x"]'));
		await come(() => texts.some((text) => text.includes('"last"')));
		ws.terminate();
		return texts.filter((text) => !text.includes('"last"'));
	}

	test("what subscribes or bids is answered without an id too, with id null", async () => {
		for (const url of urls()) {
			for (const [rest, goesOn] of ANSWERED) {
				const [text = "", ...more] = await answersTo(url, withoutId(rest));
				const head = '{"jsonrpc":"2.0","id":null,';
				assert.ok(text.startsWith(head), `${url} ${rest}: ${text}`);
				assert.match(text.slice(head.length), goesOn, `${url} ${rest}`);
				assert.deepEqual(more, []);
				const [batch = ""] = await answersTo(url, `[${withoutId('"eth_chainId"')},${withoutId(rest)}]`);
				assert.ok(batch.startsWith(`[${head}`), `${url} ${rest}: ${batch}`);
				assert.equal(idsOf(batch).length, 1, batch);
			}
		}
	});

	test("anything else without an id is a notification, as all of it is over HTTP", async () => {
		for (const url of urls()) {
			for (const rest of ['"eth_chainId"', '"nope"', '"eth_sendRawTransaction","params":["0x"]']) {
				assert.deepEqual(await answersTo(url, withoutId(rest), 0), [], `${url} ${rest}`);
			}
		}
		for (const [name, send] of doors.slice(0, 2)) {
			for (const [rest] of ANSWERED) {
				const { status, body } = await send(withoutId(rest));
				assert.deepEqual([status, body], [204, ""], `${name}: ${rest}`);
			}
		}
	});

	test("an id comes back to the digit", async () => {
		for (const url of urls()) {
			const alone = IDS.map((id) => call(id));
			assert.deepEqual((await answersTo(url, alone, IDS.length)).sort(), IDS.map(success).sort(), url);
			const batch = `[${IDS.map((id) => call(id)).join(",")}]`;
			assert.deepEqual(await answersTo(url, batch), [`[${IDS.map(success).join(",")}]`], url);
		}
	});

	test("a message behind a large batch starts behind it", async () => {
		for (const url of urls()) {
			const ws = await WsClient.open(url, { headers: client() });
			// Each uses the client's limit, which takes ten seconds to fill again: the first one gets it.
			// The large one is read in several turns of the event loop, the other one in one.
			const batch = (count: number, id: string, ...asked: [method: string, params?: string]) =>
				`[${numbers(count)
					.map((i) => call(`"${id}${i}"`, ...asked))
					.join(",")}]`;
			ws.send(batch(LARGE, "large", "net_version"));
			ws.send(batch(100, "behind", "eth_call", '[{"data":"0x"},"latest"]'));
			const answers = [await ws.next(), await ws.next()] as unknown as readonly (readonly Answered[])[];
			const of = (id: string) => answers.find(([one]) => one?.id === `${id}0`) ?? [];
			assert.equal(of("large").length, LARGE, url);
			const others = of("large").filter(({ result }) => result !== "31337");
			assert.deepEqual(others, [], url);
			assert.equal(of("behind").at(-1)?.error?.code, -32005, url);
			ws.terminate();
		}
	});

	test("a private transaction without an id is sent where its path says, and nowhere else", async () => {
		for (const message of ["alone", "with a bad entry", "over the limit"]) {
			const user = await fixture.users.actor();
			const tx = user.sign();
			const sends = `{"jsonrpc":"2.0","method":"eth_sendRawTransaction","params":["${tx.raw}"]}`;
			const many = numbers(1_000).map((i) => call(`${i}`));
			const text =
				message === "alone"
					? sends
					: `[${sends},${message === "with a bad entry" ? call("1", "eth_chainId", "{}") : many.slice(1).join(",")}]`;
			const count = message === "alone" ? 0 : 1;
			await answersTo(`${fixture.boost.url.replace("http", "ws")}/fullprivacy`, text, count);
			await fixture.users.waitUntilSent(tx);
			const { journal } = await fixture.boost.status();
			assert.equal(journal.depth, 0, `${message}: boost has taken it for a path of its own`);
		}
	});
});
