// Answers in CSV, by RFC 4180 with a header line.

import type { HttpAnswer } from "../../shared/http/messages.ts";

/** A field with one of these needs quotes. */
const SPECIAL = /[",\r\n]/;
/** Spreadsheets would run a text that begins so as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** The lines as an attachment; `headers` beside those of the file. */
export function csvAnswer(
	file: string,
	lines: readonly (readonly string[])[],
	headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
	return {
		status: 200,
		body: `${lines.map((fields) => fields.map(field).join(",")).join("\r\n")}\r\n`,
		contentType: "text/csv; charset=utf-8; header=present",
		headers: { ...headers, "content-disposition": `attachment; filename="${file}"` },
	};
}

function field(text: string): string {
	const safe = FORMULA.test(text) ? `'${text}` : text;
	return SPECIAL.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
