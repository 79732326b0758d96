// A relay that holds every kind of transaction that searchers must not find, and the answers that it gives about a
// hash, with the caller's own data removed.

import type { BiddingFixture, Signed } from "./biddingFixture.ts";
import { EMITTER, REVERTER, signedBy } from "./biddingFixture.ts";
import { postText, RawConnection } from "./rawHttp.ts";
import { type Probe, probesOf } from "./secretProbes.ts";
import { until } from "./until.ts";
import { WsClient } from "./wsClient.ts";

/** Builders of a fixture with secrets: the first one may have what is fully private. */
export const SECRET_BUILDERS = [{ name: "vault", fullPrivacy: true }, { name: "plain" }] as const;
/** Settings of a relay behind a proxy, so that users and searchers have network addresses of their own. */
export const SECRET_ENV = { TRUST_PROXY: "1" } as const;
/** The searcher who asks; the users are elsewhere. */
const ASKER = { "X-Forwarded-For": "198.51.100.77" };
/** A hash that nobody has ever seen. */
export const UNKNOWN = `0x${"5e".repeat(32)}`;

/** What is held, by what hides it. */
export interface Secrets {
	/** Hashes that answers must not tell from {@link UNKNOWN}. */
	readonly hashes: Readonly<Record<string, string>>;
	/** Those among them that no searcher may ever read anywhere. */
	readonly unheard: readonly Signed[];
	/** A private link, and the shared one behind it. */
	readonly link: { readonly hidden: Signed; readonly shared: Signed };
}

/** Submits one of each by accounts `first` to `first + 7`, and waits until each has come to rest. */
export async function holdSecrets(fixture: BiddingFixture, first: number): Promise<Secrets> {
	const { client, builders } = fixture.system;
	const one = (i: number, options: object = {}) =>
		signedBy(first + i, { to: EMITTER, value: 3n, ...options });
	const submit = async (path: string, tx: Signed, stage: string) => {
		await client.send(tx.raw, path);
		await until(`${path} at ${stage}`, async () => (await client.stage(tx.hash)) === stage);
	};
	const [passing, unchecked, gapped] = [one(0), one(1), one(2, { nonce: 3 })];
	const failing = one(3, { to: REVERTER });
	await submit("/fullprivacy", passing, "BROADCAST");
	await submit("/nochecks", unchecked, "BROADCAST");
	await submit("/fullprivacy", gapped, "QUEUED");
	await submit("/fullprivacy", failing, "SIMULATION_FAILED");
	const link = { hidden: one(4), shared: one(4, { nonce: 1 }) };
	await submit("/fullprivacy", link.hidden, "BROADCAST");
	await submit("/maxbackruns", link.shared, "BROADCAST");
	const behindUnchecked = one(5, { nonce: 1 });
	await submit("/nochecks", one(5), "BROADCAST");
	await submit("/maxbackruns", behindUnchecked, "QUEUED");
	const replaced = one(6);
	await submit("/maxbackruns", replaced, "BROADCAST");
	const fees = { maxFeePerGas: 40_000_000_000n, maxPriorityFeePerGas: 2_000_000_000n };
	const successor = one(6, { value: 4n, ...fees });
	await submit("/fullprivacy", successor, "BROADCAST");
	const unlikely = signedBy(first + 7, { value: 1n });
	await submit("/fast", unlikely, "BROADCAST");
	const [vault] = builders;
	await until("the first builder has them", () => {
		const sent = JSON.stringify(vault?.requests() ?? []);
		return [passing, unchecked, link.hidden, successor].every(({ raw }) => sent.includes(raw));
	});
	const hashes = {
		"on /fullprivacy": passing.hash,
		"on /nochecks": unchecked.hash,
		"on /fullprivacy, behind a gap": gapped.hash,
		"on /fullprivacy, failing": failing.hash,
		"shared, behind a private one": link.shared.hash,
		"shared, behind an unchecked one": behindUnchecked.hash,
		"replaced by a private one": replaced.hash,
		"private, in place of a shared one": successor.hash,
		"on /fast, not likely to be backrun": unlikely.hash,
	};
	const unheard = [passing, unchecked, gapped, failing, link.hidden, successor, unlikely];
	return { hashes, unheard, link };
}

/** The text of `value` without the hash that was asked for, in whatever case. */
export function stripped(value: unknown, hash: string): string {
	const text = typeof value === "string" ? value : JSON.stringify(value);
	return text.replaceAll(new RegExp(hash.slice(2), "gi"), "HASH");
}

/** Status, headers and text of the answer to each call, on one connection; the date is left out. */
export async function overHttp(
	fixture: BiddingFixture,
	hash: string,
	probes: readonly Probe[],
): Promise<string[]> {
	const connection = await RawConnection.open(fixture.system.relay.port);
	const answers: string[] = [];
	for (const { method, params } of probes) {
		connection.write(postText("/", { jsonrpc: "2.0", id: 1, method, params }, ASKER));
		const { status, headers, body } = await connection.answer();
		const { date: _, ...rest } = headers;
		answers.push(stripped(JSON.stringify([status, rest, body]), hash));
	}
	connection.destroy();
	return answers;
}

/** All calls in one batch, over HTTP and over a websocket: the texts of the answers. */
export async function inBatches(
	fixture: BiddingFixture,
	hash: string,
	probes: readonly Probe[],
): Promise<string[]> {
	const batch = probes.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params }));
	const connection = await RawConnection.open(fixture.system.relay.port);
	connection.write(postText("/fast", batch, ASKER));
	const { body } = await connection.answer();
	connection.destroy();
	const ws = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers: ASKER });
	ws.send(batch);
	const answer = JSON.stringify(await ws.next());
	ws.terminate();
	return [body, answer].map((text) => stripped(text, hash));
}

/** The probes about `hash` as things stand now. */
export async function probesNow(
	fixture: BiddingFixture,
	hash: string,
	index: number,
): Promise<readonly Probe[]> {
	return probesOf(hash, index, await fixture.head());
}
