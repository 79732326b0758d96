// Tests whose bundle it is, and who may cancel it, by what is known of a request.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bundleOwner, mayCancel } from "../../../../relay/ingress/bundleRequests.ts";
import { ADDRESS, type Caller, context, SIGNER } from "./bundleFixture.ts";

const PAGE = "https://app.example";
const EXTENSION = "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn";
const WEB = `web ${ADDRESS}`;

const ROWS: readonly (readonly [string, Caller, string, boolean])[] = [
	["unsigned", {}, ADDRESS, true],
	["another address", { address: "2001:db8::1" }, "2001:db8::1", true],
	["signed", { signer: SIGNER }, SIGNER, true],
	["signed from a page", { signer: SIGNER, origin: PAGE }, SIGNER, true],
	["over a websocket", { websocket: true }, ADDRESS, true],
	["a signer over a websocket", { websocket: true, signer: SIGNER }, ADDRESS, true],
	["an extension", { origin: EXTENSION }, ADDRESS, true],
	["Firefox's extension", { origin: "moz-extension://0-1" }, ADDRESS, true],
	["a page", { origin: PAGE }, WEB, false],
	["a page without TLS", { origin: "http://localhost:3000" }, WEB, false],
	["a page in capitals", { origin: "HTTPS://APP.EXAMPLE" }, WEB, false],
	["a page in a sandboxed frame", { origin: "null" }, WEB, false],
	["a page over a websocket", { origin: PAGE, websocket: true }, WEB, false],
	["an extension over a websocket", { origin: EXTENSION, websocket: true }, ADDRESS, true],
	["a scheme that only begins so", { origin: "httpsx://a" }, ADDRESS, true],
];

for (const [name, caller, owner, cancels] of ROWS) {
	test(`${name}: ${owner}, ${cancels ? "may" : "may not"} cancel`, () => {
		assert.equal(bundleOwner(context(caller)), owner);
		assert.equal(mayCancel(context(caller)), cancels);
	});
}
