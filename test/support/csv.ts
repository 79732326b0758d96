// A strict reader of CSV by RFC 4180: CRLF behind each line, the same number of fields in each,
// quotes only around whole fields.

/** The fields of each line. Throws if the text is anything else. */
export function readCsv(text: string): readonly (readonly string[])[] {
	const rows: string[][] = [];
	let row: string[] = [];
	const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
	while (field.lastIndex < text.length) {
		const at = field.lastIndex;
		const found = field.exec(text);
		if (found === null)
			throw new Error(`no CSV at character ${at}: ${JSON.stringify(text.slice(at, at + 20))}`);
		const [, quoted, plain = "", end] = found;
		row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
		if (end === ",") continue;
		rows.push(row);
		row = [];
	}
	if (row.length > 0) throw new Error("the last line has no end");
	const [first] = rows;
	if (rows.some((one) => one.length !== first?.length)) throw new Error("lines with more fields than others");
	return rows;
}
