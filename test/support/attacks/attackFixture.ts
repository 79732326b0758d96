// The fixture of attack tests: a relay in a process of its own, a real anvil behind a counting
// proxy, a builder, an attacker at
// 127.0.0.2 in another process, and an honest user at 127.0.0.1 who is measured all the time.

import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { metered } from "../eventLoopTime.ts";
import { type NodeProxy, startNodeProxy } from "../nodes.ts";
import { type RelayProcess, startRelayProcess } from "../processes.ts";
import { until } from "../until.ts";
import { Attacker } from "./attacker.ts";
import { HonestUser } from "./honestUser.ts";
import { type Figures, Measuring } from "./measuring.ts";
import { type QuickBuilder, startQuickBuilder } from "./quickBuilder.ts";
import { HONEST, send } from "./wire.ts";

interface AttackFixtureOptions {
	/**
	 * Settings of the relay besides those that connect it to node and builder; all others have their
	 * defaults.
	 */
	readonly env?: Readonly<Record<string, string>>;
	/** Whether the turns of its event loop are measured, see eventLoopTime.ts. */
	readonly isMetered?: boolean;
	/** Whether it reports its live memory, see collectedMain.ts. */
	readonly isCollected?: boolean;
	/**
	 * False: the attacker gets its part of the processors, without which it waits for minutes on a
	 * busy machine. Default true: the times of others are measured, so it leaves the processors to
	 * them.
	 */
	readonly isTimed?: boolean;
	/** Time between two blocks during a measurement, in ms. Default 1,000. */
	readonly headEveryMs?: number;
	/** Gets the measurements as lines of text. By default they are printed if `VERBOSE=1`. */
	readonly say?: (line: string) => void;
}

/** The operator's token for the metrics. */
const METRICS_TOKEN = "a token of the operator's";
const HEAD_EVERY_MS = 1_000;

/** A process that clients reach, with an attacker and an honest user of its own. */
export interface Door {
	readonly process: RelayProcess;
	readonly attacker: Attacker;
	readonly user: HonestUser;
	readonly measuring: Measuring;
}

/** A relay under attack. */
export class AttackFixture {
	readonly chain: DevChain;
	readonly node: NodeProxy;
	readonly builder: QuickBuilder;
	readonly door: Door;
	/** The operator's headers for reading the metrics. */
	readonly operator = { authorization: `Bearer ${METRICS_TOKEN}` };
	readonly #endings: readonly (() => unknown)[];
	readonly #headEveryMs: number;
	readonly #say: (line: string) => void;

	constructor(
		parts: Pick<AttackFixture, "chain" | "node" | "builder" | "door">,
		{
			endings,
			headEveryMs = HEAD_EVERY_MS,
			say,
		}: Pick<AttackFixtureOptions, "headEveryMs"> & {
			readonly endings: readonly (() => unknown)[];
			readonly say: (line: string) => void;
		},
	) {
		({ chain: this.chain, node: this.node, builder: this.builder, door: this.door } = parts);
		this.#endings = endings;
		this.#headEveryMs = headEveryMs;
		this.#say = say;
	}

	get relay(): RelayProcess {
		return this.door.process;
	}

	get attacker(): Attacker {
		return this.door.attacker;
	}

	get measuring(): Measuring {
		return this.door.measuring;
	}

	/**
	 * Like Measuring.during of `measuring`, by default that of the relay's user, and mines blocks
	 * meanwhile.
	 */
	during(name: string, work?: Promise<unknown>, measuring = this.measuring): Promise<Figures> {
		return this.underBlocks(() => measuring.during(name, work));
	}

	/** Mines blocks until `work` is done. */
	async underBlocks<T>(work: () => Promise<T>): Promise<T> {
		let isDone = false;
		let fault: { readonly thrown: unknown } | null = null;
		const passing = async (): Promise<void> => {
			while (!isDone) {
				await this.passBlock();
				const end = performance.now() + this.#headEveryMs;
				await until("the next head", () => isDone || performance.now() > end);
			}
		};
		const heads = passing().catch((thrown: unknown) => {
			fault = { thrown };
		});
		const result = await work().finally(() => {
			isDone = true;
			return heads;
		});
		if (fault !== null) throw (fault as { readonly thrown: unknown }).thrown;
		return result;
	}

	/** Mines an empty block, and returns its number. */
	async passBlock(): Promise<number> {
		const head = (await this.chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
		await this.chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + this.chain.slotSeconds }]);
		return Number(head.number) + 1;
	}

	/** Like {@link passBlock}, and waits until the relay has handled the block. */
	async workedOff(): Promise<number> {
		const number = await this.passBlock();
		await this.seesHead(number);
		return number;
	}

	/** Waits until the relay has handled a block with at least this number. */
	async seesHead(number: number, ms = 30_000): Promise<void> {
		await until(`head ${number}`, async () => ((await this.metric("relay_head_number")) ?? -1) >= number, ms);
	}

	/** Reports a line. */
	say(...parts: readonly unknown[]): void {
		this.#say(parts.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" "));
	}

	/**
	 * Number of open connections of `address` to the process of `door`, from the operating system.
	 */
	async connectionsFrom(address: string, door = this.door): Promise<number> {
		const port = door.process.port.toString(16).toUpperCase().padStart(4, "0");
		const remote = Buffer.from(address.split(".").map(Number)).reverse().toString("hex").toUpperCase();
		const table = await readFile("/proc/net/tcp", "utf8");
		const open = new RegExp(`^\\s*\\d+: 0100007F:${port} ${remote}:\\w{4} 01 `, "gm");
		return table.match(open)?.length ?? 0;
	}

	/** The number of the next block. */
	async nextBlock(): Promise<number> {
		return Number(await this.chain.rpc("eth_blockNumber")) + 1;
	}

	/** The value of a metric without labels. */
	async metric(name: string): Promise<number | undefined> {
		const url = `${this.relay.url}/metrics`;
		const { body } = await send({ url, from: HONEST, headers: this.operator, deadlineMs: 30_000 });
		const value = new RegExp(`^${name} (\\S+)$`, "m").exec(body)?.[1];
		return value === undefined ? undefined : Number(value);
	}

	/** Sets the balance of `address`. */
	async fund(address: string, wei: bigint): Promise<void> {
		await this.chain.rpc("anvil_setBalance", [address, `0x${wei.toString(16)}`]);
	}

	async stop(): Promise<void> {
		for (const end of this.#endings) await end();
	}
}

/** Starts everything; if a part does not start, stops the others. */
export async function startAttackFixture(options: AttackFixtureOptions = {}): Promise<AttackFixture> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const endings: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
	try {
		const chain = await startDevChain();
		endings.unshift(() => chain.stop());
		const node = await startNodeProxy(chain.url);
		endings.unshift(() => node.stop());
		const builder = await startQuickBuilder();
		endings.unshift(() => builder.stop());
		const relay = await startRelayProcess({
			...(options.isMetered === true ? metered("relay/main.ts") : {}),
			...(options.isCollected === true
				? { entry: "test/support/collectedMain.ts", args: ["relay/main.ts"] }
				: {}),
			env: {
				PORT: "0",
				HOST: "127.0.0.1",
				ETH_RPC_URL: node.url,
				HEAD_POLL_MS: "100",
				// The attacks keep the node busy: on a slow machine it may need longer than a second for an
				// account.
				ACCOUNT_TIMEOUT_MS: "20000",
				BUILDERS: JSON.stringify([{ name: "quick", url: builder.url }]),
				DATA_DIR: folder,
				MAX_HEAD_AGE_S: "86400",
				METRICS_TOKEN,
				...options.env,
			},
		});
		endings.unshift(() => relay.kill());
		const attacker = Attacker.start(relay.url, { yields: options.isTimed !== false });
		endings.unshift(() => attacker.stop());
		const user = await HonestUser.arrive({ relay, chain, builder });
		const say = options.say ?? (process.env.VERBOSE === "1" ? sayAloud : () => {});
		const measuring = new Measuring({ user, pid: relay.pid, say });
		const parts = { chain, node, builder, door: { process: relay, attacker, user, measuring } };
		return new AttackFixture(parts, { ...options, endings, say });
	} catch (thrown) {
		for (const end of endings) await end();
		throw thrown;
	}
}

function sayAloud(line: string): void {
	process.stderr.write(`${line}\n`);
}
