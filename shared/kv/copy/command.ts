// `npm run store`: words and environment come in, a copied store or a database with its tables goes out, told line by
// line, with the process's exit code. It ends no process and reads no environment by itself.

import { type Clock, withDeadline } from "../../clock.ts";
import { readSettings, settingLines } from "../../config.ts";
import { Database } from "../postgres/database.ts";
import { migrate } from "../postgres/migrate.ts";
import { type CopyPlan, type CopyResult, copyStore, type Place, planCopy } from "./copyStore.ts";
import { isEmpty } from "./entries.ts";
import { faultLine } from "./faults.ts";
import {
	copyCommand,
	ENGINES,
	type EngineName,
	readMarks,
	STORES,
	StoreMovedError,
	type StoreName,
} from "./marks.ts";
import { COPY_SETTINGS, type CopySettings, DATABASE_SETTINGS, openPlace, openSource } from "./places.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What the command is given. */
export interface CommandInput {
	readonly args: readonly string[];
	readonly env: Environment;
	readonly clock: Clock;
	/** Takes a line of what it does. */
	readonly say: (line: string) => void;
	/** Takes the line of what it could not do. */
	readonly complain: (line: string) => void;
}

interface CopyWords {
	readonly from: EngineName;
	readonly to: EngineName;
	/** Null: every one that is there. */
	readonly store: StoreName | null;
}

/** The command can't be done with what it was given. */
class CommandError extends Error {
	readonly code: "USAGE" | "STORE_MISSING" | "STORE_DIFFERS";
	constructor(code: CommandError["code"], message: string) {
		super(message);
		this.name = "CommandError";
		this.code = code;
	}
}

const USAGE = "expected copy, migrate or --help, for example npm run store -- copy lmdb postgres";
/** How long a store may take to close once all was said, in ms. */
const CLOSE_MS = 3_000;

const HELP = `npm run store: moves the stores of relay and boost between engines

  npm run store -- copy <from> <to> [relay|boost]
      from and to: lmdb (in DATA_DIR) and postgres (DATABASE_URL). Both stores, unless one is named.
      Stop relay and boost first. It may be stopped at any time: the same command completes it.
      What was copied is read again on both sides; the source is then marked as moved, and refused at a start.
      To copy it back is the same with the engines the other way round.
  npm run store -- migrate
      Brings the tables of DATABASE_URL up to date. Where they are, nothing is done.
  npm run store -- --help
      This text.

${settingLines(COPY_SETTINGS).join("\n")}`;

/** Does it, and answers the exit code; never rejects. */
export async function runStoreCommand({ args, env, clock, say, complain }: CommandInput): Promise<0 | 1> {
	try {
		if (args.includes("--help")) say(HELP);
		else if (args[0] === "migrate") await bringUpToDate(args, env, { clock, say });
		else await copyAll(wordsOf(args), readSettings(COPY_SETTINGS, env), { clock, say });
		return 0;
	} catch (thrown) {
		complain(faultLine(thrown));
		return 1;
	}
}

interface Dependencies {
	readonly clock: Clock;
	readonly say: (line: string) => void;
}

async function bringUpToDate(
	args: readonly string[],
	env: Environment,
	{ clock, say }: Dependencies,
): Promise<void> {
	if (args.length > 1)
		throw new CommandError("USAGE", "migrate takes no more words: expected npm run store -- migrate");
	const { DATABASE_URL, DATABASE_VERIFY } = readSettings(DATABASE_SETTINGS, env);
	const options = { url: DATABASE_URL, verify: DATABASE_VERIFY, name: "migrate" };
	const database = new Database(options, { clock });
	try {
		const ran = await migrate(database);
		say(`the database's tables are up to date; run now: ${ran.length === 0 ? "nothing" : ran.join(", ")}`);
	} finally {
		await closed(clock, database);
	}
}

function wordsOf(args: readonly string[]): CopyWords {
	const [command, from, to, store, ...more] = args;
	if (command !== "copy") throw new CommandError("USAGE", USAGE);
	const [source, destination] = [ENGINES.find((name) => name === from), ENGINES.find((name) => name === to)];
	if (source === undefined || destination === undefined || source === destination) {
		const example = "for example npm run store -- copy lmdb postgres";
		throw new CommandError(
			"USAGE",
			`copy takes two engines: expected lmdb and postgres in either order, ${example}`,
		);
	}
	const named = STORES.find((name) => name === store);
	if (more.length > 0 || (store !== undefined && named === undefined)) {
		const example = `for example ${copyCommand(source, destination, "relay")}`;
		throw new CommandError(
			"USAGE",
			`copy takes one store, or none for both: expected relay or boost, ${example}`,
		);
	}
	return { from: source, to: destination, store: named ?? null };
}

/** All are opened and looked at before the first entry of one is copied, so that what can be refused is refused whole. */
async function copyAll(
	words: CopyWords,
	settings: CopySettings,
	{ clock, say }: Dependencies,
): Promise<void> {
	const opened: Place[] = [];
	const keep = (place: Place): Place => {
		opened.push(place);
		return place;
	};
	try {
		const plans: CopyPlan[] = [];
		let moved: StoreMovedError | null = null;
		for (const store of words.store === null ? STORES : [words.store]) {
			const plan = await planned(store, words, settings, { clock, keep });
			if (plan === null) say(`${store}: there is no store in ${words.from}, nothing is copied`);
			else if (plan instanceof StoreMovedError) moved ??= plan;
			else plans.push(plan);
		}
		if (plans.length === 0) throw moved ?? missing(words.from);
		if (moved !== null) say(`nothing is copied of what has been: ${moved.message}`);
		for (const plan of plans) await copied(plan, { clock, say });
	} finally {
		for (const { kv } of opened) await closed(clock, kv);
	}
}

/** Null where there is nothing to copy; the error where it was copied before, and is where it is to go. */
async function planned(
	store: StoreName,
	{ from, to }: CopyWords,
	settings: CopySettings,
	{ clock, keep }: { readonly clock: Clock; readonly keep: (place: Place) => Place },
): Promise<CopyPlan | StoreMovedError | null> {
	const source = await openSource(from, store, settings, clock);
	if (source === null) return null;
	keep(source);
	const { underWay, moved } = await readMarks(source.kv);
	if (underWay === null && moved === null && (await isEmpty(source.kv))) return null;
	const destination = keep(await openPlace(to, store, settings, clock));
	try {
		return await planCopy(store, source, destination);
	} catch (thrown) {
		if (!(thrown instanceof StoreMovedError) || (await isEmpty(destination.kv))) throw thrown;
		const { underWay } = await readMarks(destination.kv);
		if (underWay !== null) throw thrown;
		return thrown;
	}
}

function missing(engine: EngineName): CommandError {
	const setting = engine === "lmdb" ? "DATA_DIR" : "DATABASE_URL";
	return new CommandError(
		"STORE_MISSING",
		`there is no store in ${engine}: expected one that was used, for example the ${setting} that relay and boost had`,
	);
}

async function copied(plan: CopyPlan, { clock, say }: Dependencies): Promise<void> {
	const { store, from, to } = plan;
	say(`${store}: copying from ${from.engine} to ${to.engine}`);
	let result: CopyResult;
	try {
		result = await copyStore(plan, {
			clock,
			report: ({ read, written, removed }) =>
				say(`${store}: ${read} entries looked at, ${written} written, ${removed} removed`),
		});
	} catch (thrown) {
		say(`${store}: not copied whole; the same command completes it`);
		throw thrown;
	}
	const { read, written, removed } = result.counts;
	say(`${store}: all ${read} entries looked at, ${written} written, ${removed} removed`);
	for (const { engine, digest } of [
		{ engine: from.engine, digest: result.from },
		{ engine: to.engine, digest: result.to },
	]) {
		say(`${store}: ${engine} has ${digest.count} entries, SHA-256 ${digest.sha256}`);
	}
	if (!result.isSame) {
		const again = `expected the same on both sides, run ${copyCommand(from.engine, to.engine, store)} again`;
		throw new CommandError("STORE_DIFFERS", `the ${store}'s stores differ after the copy: ${again}`);
	}
	const how = to.engine === "postgres" ? "with" : "without";
	say(`${store}: moved to ${to.engine}: start ${how} DATABASE_URL`);
}

/** Closes it if that can be done in time: the process ends anyway, and no write is under way. */
async function closed(clock: Clock, opened: { close(): Promise<void> }): Promise<void> {
	await withDeadline(clock, "close", CLOSE_MS, () => opened.close()).catch(() => {});
}
