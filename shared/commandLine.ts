// The command lines of the scripts that are not servers. --help explains a script and starts
// nothing. Unknown arguments are an error.

import { type ParseArgsConfig, parseArgs } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;

interface Command<O extends Options> {
	/** As it is typed: "npm start". */
	readonly name: string;
	/** Description of the command, as lines. */
	readonly about: readonly string[];
	/**
	 * The required operand in angle brackets, and its expected form: ["<hash>", "32 bytes as 0x
	 * hex"].
	 */
	readonly operand?: readonly [name: string, expected: string];
	readonly options?: O;
	/** Description of each option. */
	readonly optionsHelp?: Readonly<Record<keyof O, string>>;
	/** Environment variables, each with its purpose. */
	readonly settings?: readonly (readonly [name: string, about: string])[];
	/** The exit code for wrong arguments. Default 1. */
	readonly wrongCode?: number;
}

/**
 * The values of the options, and the operand ("" if the command has none). Null if the help or an
 * error was printed and the exit code set; the caller then has nothing to do.
 */
export function readCommand<const O extends Options>(command: Command<O>, args: readonly string[]) {
	const { name, operand, options = {} as O, wrongCode = 1 } = command;
	if (args.includes("--help")) {
		process.stdout.write(`${helpOf(command)}\n`);
		return null;
	}
	let problem: string;
	try {
		const config = { args: [...args], options, allowPositionals: operand !== undefined };
		const { values, positionals } = parseArgs(config);
		const [given = "", ...more] = positionals;
		if (operand === undefined || (given !== "" && more.length === 0)) return { values, operand: given };
		problem = given === "" ? `${operand[0]} is missing` : `one ${operand[0]} at a time`;
	} catch (thrown) {
		problem = (thrown as Error).message.split(". ")[0] ?? "";
	}
	const known = ["--help", ...Object.keys(options).map((option) => `--${option}`)].join(", ");
	const expected = operand === undefined ? known : `${operand[0]}, ${operand[1]}, or ${known}`;
	process.stderr.write(`${name}: ${problem}: expected ${expected}\n`);
	process.exitCode = wrongCode;
	return null;
}

function helpOf<O extends Options>(command: Command<O>): string {
	const { name, about, operand, options, optionsHelp, settings = [] } = command;
	const own = Object.entries(options ?? {}).map(([option, { type, default: usual }]) => {
		const value = type === "string" ? ` ${option.toUpperCase()}` : "";
		const more = typeof usual === "string" ? `; default ${usual}` : "";
		return [`--${option}${value}`, `${optionsHelp?.[option as keyof O] ?? ""}${more}`] as const;
	});
	const all = [...own, ["--help", "this text; starts nothing"] as const];
	const sections = [[`${name}: ${about.join("\n")}`]];
	if (operand !== undefined) sections.push([`  ${name} -- ${operand[0]}    (${operand[1]})`]);
	if (settings.length > 0) sections.push(["Settings (environment variables):", ...rows(settings)]);
	sections.push([`Options, behind \`${name} --\`:`, ...rows(all)]);
	return sections.map((lines) => lines.join("\n")).join("\n\n");
}

function rows(table: readonly (readonly [string, string])[]): readonly string[] {
	const width = Math.max(...table.map(([name]) => name.length));
	return table.map(([name, about]) => `  ${name.padEnd(width)}  ${about}`);
}
