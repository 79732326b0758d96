// Which `Accept` asks for an event stream where JSON is the usual answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asksFor } from "../../../../shared/http/eventStreams.ts";

const ASKS: readonly string[] = [
	"text/event-stream",
	"Text/Event-Stream",
	" text/event-stream ; charset=utf-8",
	"text/event-stream, */*",
	"text/event-stream, */*;q=0.1",
	"*/*;q=0.8, text/event-stream;q=0.8",
	"text/html, text/event-stream",
	"application/json;q=0.5, text/event-stream",
	"application/json;q=0.5,text/event-stream;q=0.501",
	"application/json;q=0, text/event-stream;q=0.001",
	"application/*;q=0.3, text/event-stream;q=0.4, */*",
	"application/json;q=2, text/event-stream",
	",, text/event-stream,",
];

const DOES_NOT: readonly (string | undefined)[] = [
	undefined,
	"",
	"*/*",
	"text/*",
	"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
	"application/json",
	"application/json, text/event-stream",
	"text/event-stream, application/json",
	"text/event-stream;q=0",
	"text/event-stream;q=0.0, */*;q=0",
	"text/event-stream;q=0.4, application/json;q=0.5",
	"text/event-stream;q=0.4, application/*;q=0.5",
	"text/event-stream;q=0.4, */*",
	"text/event-stream;q=1.5",
	"text/event-stream;q=x",
	"text/event-streams",
	"text / event-stream",
	"event-stream",
	'x/y;a="text/event-stream"',
];

test("a stream is asked for by its full name, with at least the weight of JSON", () => {
	for (const accept of ASKS) {
		assert.equal(asksFor("text/event-stream", "application/json", accept), true, accept);
	}
});

test("anything else gets JSON", () => {
	for (const accept of DOES_NOT) {
		assert.equal(asksFor("text/event-stream", "application/json", accept), false, String(accept));
	}
});
