// Checks the token of an `Authorization: Bearer` header, in a time that tells nothing of it.

import { createHash, timingSafeEqual } from "node:crypto";

/** Whether an `Authorization` header has `token`; null where there is no token, and nobody may. */
export function bearerCheck(token: string | undefined): ((header: string | undefined) => boolean) | null {
	if (token === undefined || token === "") return null;
	const expected = digest(token);
	return (header) => {
		const given = /^bearer +(.*)$/i.exec(header ?? "")?.[1] ?? "";
		return timingSafeEqual(digest(given.trim()), expected);
	};
}

function digest(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}
