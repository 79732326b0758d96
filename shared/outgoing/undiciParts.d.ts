// Types of the parts of undici that the HTTP client needs. Its entry also loads fetch, caches,
// mocks and EventSource: a tenth of the CPU time of a start.

declare module "undici/lib/dispatcher/pool.js" {
	export { Pool as default } from "undici";
}

declare module "undici/lib/core/connect.js" {
	export { buildConnector as default } from "undici";
}
