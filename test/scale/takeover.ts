// The core is killed, drained, or suspended until its lease has run out, under submissions to the
// other relays. Another relay sends what is pending, websockets of the other relays stay open, and
// each submission is accepted or refused. Nothing that was refused is sent.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { pause, systemClock } from "../../shared/clock.ts";
import { EMITTER } from "../support/biddingFixture.ts";
import { FeedClient } from "../support/feeds.ts";
import { REFUSED_WITHOUT_CORE, RelayClient } from "../support/relayClient.ts";
import { mineAll } from "../support/systems.ts";
import { signedTransaction } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { timeOf } from "./checks.ts";
import { type ScaleWorld, startScaleWorld } from "./scaleWorld.ts";

interface Signed {
	readonly raw: string;
	readonly hash: string;
}

/** A submission while the core ends, with its answer. */
interface Asked extends Signed {
	/** Unix ms. */
	readonly askedAt: number;
	readonly answeredAt: number;
	/** Its hash, or the code and message of an error. */
	readonly answer: string;
}

/** Between two submissions, in ms. */
const EVERY_MS = { timed: 40, untimed: 150 };
/** Within a second; the rest is the machine's. */
const ANSWERED_MS = 1_300;
/**
 * From the end of the core to the first call of another relay. The lease of a suspended one is six
 * seconds.
 */
const SENT_MS: Readonly<Record<string, number>> = {
	"is killed": 5_000,
	drains: 1_000,
	"is suspended": 8_000,
};
const PENDING = 3;
const ENDS = [
	["is killed", "SIGKILL"],
	["drains", "SIGTERM"],
	["is suspended", "SIGSTOP"],
] as const;

let world: ScaleWorld;

/**
 * Tests each end of the core. `isTimed`: also how long it takes, which needs a machine that does
 * nothing else.
 */
export function testTakeovers({ isTimed }: { readonly isTimed: boolean }): void {
	before(async () => {
		world = await startScaleWorld({ relays: 3, boosts: 0, accounts: isTimed ? 2_000 : 500, manual: true });
	});
	after(() => world?.stop());
	// Without times, test/integration/scale/edges.test.ts has the other ends.
	for (const [how, signal] of isTimed ? ENDS : ENDS.slice(-1)) {
		test(`the core ${how}: another relay sends, and clients of the others see at most a refusal`, (t) =>
			takesOver(t, { how, signal, isTimed }));
	}
}

interface End {
	readonly how: string;
	readonly signal: NodeJS.Signals;
	readonly isTimed: boolean;
}

async function takesOver(t: TestContext, { how, signal, isTimed }: End): Promise<void> {
	const { cluster, builder } = world;
	await until("all relays serve", () => cluster.ready("relay").length === 3);
	const core = await cluster.core();
	const [edge, other] = cluster.relays.filter((one) => one !== core);
	assert.ok(edge !== undefined && other !== undefined);
	const atEdge = new RelayClient(edge.url);
	const searcher = await FeedClient.open(`${edge.url.replace("http", "ws")}/ws`);
	t.after(() => searcher.close());
	const feed = await searcher.subscribe("service_partialPendingTransactions");
	const pending = Array.from({ length: PENDING }, () => sign());
	for (const { raw, hash } of pending) assert.equal(await atEdge.send(raw, "/fast"), hash);
	const [first] = pending;
	assert.ok(first !== undefined);
	const status = await searcher.subscribe("service_transactionStatus", first.hash);
	const before = core.current;
	for (const one of pending) await sentBy(one, (process) => process === before);

	const endedBefore = cluster.ends.length;
	const asking = askAll([edge.url, other.url], isTimed ? EVERY_MS.timed : EVERY_MS.untimed);
	await until("some were taken", () => asking.asked.filter(isTaken).length > 3);
	const begun = systemClock.now();
	core.process?.signal(signal);
	t.after(() => core.process?.signal("SIGCONT"));
	const call = await sentBy(first, (process) => process !== before);
	t.diagnostic(`${how}: ${call.process} sent ${call.at - begun} ms later`);
	if (isTimed)
		assert.ok(call.at - begun <= (SENT_MS[how] ?? 0), `${call.process} sent ${call.at - begun} ms later`);
	const tookOver = systemClock.now();
	await until("some were taken again", () => {
		return asking.asked.filter((one) => isTaken(one) && one.askedAt > tookOver).length > 3;
	});
	await asking.stop();
	if (signal === "SIGSTOP") {
		core.process?.signal("SIGCONT");
		await until("the woken process has ended", () => cluster.ends.some((one) => one.process === before));
	}

	const late = asking.asked.filter(({ askedAt, answeredAt }) => answeredAt - askedAt > ANSWERED_MS);
	if (isTimed) assert.deepEqual(late.map(shown), [], "answered or refused within a second");
	const refused = asking.asked.filter((one) => !isTaken(one));
	t.diagnostic(`${asking.asked.length} asked, ${refused.length} refused`);
	const unanswered = refused.filter(({ answer }) => !REFUSED_WITHOUT_CORE.test(answer)).map(shown);
	const ended = cluster.ends.slice(endedBefore).filter(({ process }) => process !== before);
	if (unanswered.length > 0 && ended.length > 0 && !isTimed)
		t.skip(`this machine is too busy: ${ended[0]?.process} could not renew its lease`);
	else assert.deepEqual(unanswered, []);

	// All that was taken is sent for the next block as well, by which time all that is to be sent has
	// been.
	await builder.buildBlock();
	const taken = asking.asked.filter(isTaken);
	await mineAll(world, taken);
	const calls = world.calls();
	const sent = refused.filter(({ askedAt, raw }) => {
		return askedAt > begun && calls.some(({ text }) => text.includes(raw));
	});
	assert.deepEqual(sent.map(shown), [], "nothing that was refused is sent");

	const told = () => searcher.received(status).at(-1)?.status;
	await until("the websocket that was open before tells what is mined", () => told() === "INCLUDED");
	const news = sign();
	assert.equal(await atEdge.send(news.raw, "/maxbackruns"), news.hash);
	await searcher.shown(feed, news.hash);
	for (const { hash } of [...pending, ...taken, news])
		assert.ok(searcher.times(feed, hash) <= 1, `${hash} was shown ${searcher.times(feed, hash)} times`);
	assert.equal(searcher.ws.socket.readyState, searcher.ws.socket.OPEN);
	await builder.buildBlock();
}

/** One of an account that has sent nothing yet. */
function sign(): Signed {
	const by = world.account();
	if (by === null) throw new Error("no more accounts");
	const { raw, hash } = signedTransaction({ by, to: EMITTER });
	return { raw: `0x${Buffer.from(raw).toString("hex")}`, hash };
}

/** The first call to the builder with `one`, by a process of those that are meant. */
function sentBy({ raw }: Signed, isMeant: (process: string) => boolean) {
	return until("the builder is sent it", () =>
		world.calls().find(({ process, text }) => isMeant(process) && text.includes(raw)),
	);
}

/** Submits to `urls` in turn, every `everyMs`, whatever the answers. */
function askAll(urls: readonly string[], everyMs: number) {
	const asked: Asked[] = [];
	const underWay = new Set<Promise<void>>();
	let isOver = false;
	const clients = urls.map((url) => new RelayClient(url));
	const ask = async (client: RelayClient): Promise<void> => {
		const one = sign();
		const askedAt = systemClock.now();
		const answer = await client.send(one.raw, "/fast").catch(({ message }: Error) => message);
		asked.push({ ...one, askedAt, answeredAt: systemClock.now(), answer });
	};
	const running = (async () => {
		for (let turn = 0; !isOver; turn++) {
			const client = clients[turn % clients.length];
			if (client === undefined) throw new Error("nobody to ask");
			const asking = ask(client).finally(() => underWay.delete(asking));
			underWay.add(asking);
			await pause(systemClock, everyMs);
		}
	})();
	return {
		/** The answered calls so far. */
		asked,
		async stop(): Promise<void> {
			isOver = true;
			await running;
			await Promise.all(underWay);
		},
	};
}

function isTaken({ answer, hash }: Asked): boolean {
	return answer === hash;
}

function shown({ hash, askedAt, answeredAt, answer }: Asked): string {
	return `${hash} asked ${timeOf(askedAt)}, answered ${timeOf(answeredAt)}: ${answer}`;
}
