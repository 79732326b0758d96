// `npm run why -- <hash>`: prints why a transaction did not land, as far as a running relay or
// boost knows. Exits with 0 if it did, with 1 if it did not, and with 2 if no server could answer.

import { systemClock } from "../clock.ts";
import { readCommand } from "../commandLine.ts";
import { url } from "../config.ts";
import { parseHash } from "../ethereum/hex.ts";
import { factsOf, UnansweredError } from "./asking.ts";
import { hasLanded, story } from "./story.ts";

const USUAL_URL = "http://127.0.0.1:8080";
/** The exit code if no server could answer. */
const CANNOT_ASK = 2;
const COMMAND = {
	name: "npm run why",
	about: [
		"explains in a paragraph whether and why a transaction landed or not, and what to do now.",
		"Exits with 0 if it landed, with 1 if it did not, and with 2 if no server could be asked.",
	],
	operand: ["<hash>", "the hash of a transaction, 32 bytes as 0x hex"],
	settings: [["RELAY_URL", `a relay, or boost, that is running; default ${USUAL_URL}`]],
	wrongCode: CANNOT_ASK,
} as const;
/** Characters of a server's answer that could move a terminal's cursor or colour its text. */
const UNPRINTABLE = /[^\x20-\x7e]/g;

async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
	const asked = readCommand(COMMAND, args);
	if (asked === null) return Number(process.exitCode ?? 0);
	const hash = parseHash(asked.operand);
	if (hash === null) return refused(`that is no hash: expected ${COMMAND.operand[1]}`);
	const given = env.RELAY_URL?.trim() || USUAL_URL;
	const relayUrl = url("http:", "https:")(given);
	if (relayUrl === undefined)
		return refused(
			`RELAY_URL is not valid: expected an http or https URL, for example RELAY_URL=${USUAL_URL}`,
		);
	try {
		const facts = await factsOf(hash, relayUrl, systemClock);
		process.stdout.write(`${story(facts).replace(UNPRINTABLE, "?")}\n`);
		return hasLanded(facts) ? 0 : 1;
	} catch (thrown) {
		if (!(thrown instanceof UnansweredError)) throw thrown;
		return refused(
			`${thrown.message}: expected a running relay or boost as RELAY_URL, for example RELAY_URL=${USUAL_URL}`,
		);
	}
}

function refused(text: string): number {
	process.stderr.write(`${COMMAND.name}: ${text}\n`);
	return CANNOT_ASK;
}

process.exit(await main(process.argv.slice(2), process.env));
