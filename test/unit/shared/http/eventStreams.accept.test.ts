// Requests that ask for an event stream.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asksForEvents } from "../../../../shared/http/eventStreams.ts";

const ACCEPTS: readonly (readonly [accept: string | undefined, asks: boolean])[] = [
	["text/event-stream", true],
	["Text/Event-Stream", true],
	[" text/event-stream ; charset=utf-8", true],
	["text/event-stream, */*;q=0.1", true],
	["text/html, text/event-stream", true],
	["text/event-stream, application/json", true],
	[",, text/event-stream,", true],
	[undefined, false],
	["", false],
	["*/*", false],
	["text/*", false],
	["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", false],
	["application/json", false],
	["application/json, text/event-stream", false],
	["text/event-streams", false],
	["event-stream", false],
	['x/y;a="text/event-stream"', false],
];

test("an event stream is asked for by its full media type, before JSON", () => {
	for (const [accept, asks] of ACCEPTS) assert.equal(asksForEvents(accept), asks, String(accept));
});
