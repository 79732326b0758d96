// `GET /bundle/{hash}`: what became of a bundle, for the client that sent it. Everybody else gets what unknown hashes
// get, to the byte.

import { parseHash } from "../../shared/ethereum/hex.ts";
import type { VerifySignature } from "../../shared/http/callContext.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/httpAnswer.ts";
import type { Route, RouteRequest } from "../../shared/http/routes.ts";
import type { BundleReader } from "../domain/ports.ts";
import { bundleOwner } from "./bundleOwner.ts";
import { bundleView } from "./bundleView.ts";

export interface BundleRouteDependencies {
	readonly bundles: BundleReader;
	/** Checks `X-Flashbots-Signature`; a GET has no body, so it is over the bundle's hash as lower-case hex. */
	readonly verifySignature: VerifySignature;
}

const NOT_FOUND: HttpAnswer = jsonAnswer(404, { error: "no bundle of yours with this hash was seen here" });

/** The route. */
export function bundleRoute({ bundles, verifySignature }: BundleRouteDependencies): Route {
	const handle = ({ params, headers, address }: RouteRequest): HttpAnswer => {
		const hash = parseHash(params.hash ?? "");
		if (hash === null) return jsonAnswer(400, { error: "expected a bundle hash of 32 bytes as 0x hex" });
		const header = headers["x-flashbots-signature"];
		let signer: string | null = null;
		if (header !== undefined) {
			const check = verifySignature(String(header), hash);
			if (!check.ok) {
				const expected = "expected a signature over the bundle's hash as lower-case hex";
				return jsonAnswer(400, {
					error: `X-Flashbots-Signature does not verify: ${check.reason}: ${expected}`,
				});
			}
			signer = check.address;
		}
		const client = { address, signer, vouched: false };
		const owner = bundleOwner({ transport: "http", client, origin: headers.origin ?? null });
		const record = bundles.bundle(owner, hash);
		return record === null ? NOT_FOUND : jsonAnswer(200, bundleView(record, bundles.standing(record)));
	};
	return { path: "/bundle/{hash}", weight: 1, handle };
}
