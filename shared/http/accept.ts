// Content negotiation: what comes in is an `Accept` header, what goes out is whether a type was asked for. It knows
// nothing of what is answered.

/** A media range with its weight. */
interface Range {
	/** Lower case, without parameters. */
	readonly type: string;
	/** 0 to 1. */
	readonly q: number;
}

/**
 * Whether `accept` asks for the type `special` where `usual` is what is answered otherwise: it must be named in full and
 * weigh at least as much as the usual one; where both are named with the same weight, the usual one it is. Both types in
 * lower case. https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
 */
export function asksFor(special: string, usual: string, accept: string | undefined): boolean {
	if (accept === undefined) return false;
	const ranges = accept.split(",").flatMap(readRange);
	const wanted = weight(ranges, [special]);
	if (wanted === undefined || wanted === 0) return false;
	const named = weight(ranges, [usual]);
	if (named !== undefined) return wanted > named;
	return wanted >= (weight(ranges, [`${usual.slice(0, usual.indexOf("/"))}/*`, "*/*"]) ?? 0);
}

/** The weight of the first of `types` that is among the ranges. */
function weight(ranges: readonly Range[], types: readonly string[]): number | undefined {
	for (const type of types) {
		const range = ranges.find((one) => one.type === type);
		if (range !== undefined) return range.q;
	}
	return undefined;
}

/** None for what is no range with a weight. */
function readRange(text: string): Range[] {
	const [type = "", ...params] = text.split(";").map((part) => part.trim().toLowerCase());
	if (!/^[^\s/]+\/[^\s/]+$/.test(type)) return [];
	const q = params.find((param) => param.startsWith("q="))?.slice(2) ?? "1";
	return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(q) ? [{ type, q: Number(q) }] : [];
}
