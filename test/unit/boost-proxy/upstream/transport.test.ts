// Reads an answer beside its text: whether it is one, how long to wait, and whether the request
// came back to boost. The others are reported to the operator.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpTransport } from "../../../../boost-proxy/upstream/transport.ts";
import type { Symptom } from "../../../../shared/outgoing/advice.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { httpText, RawUpstream } from "../../../support/upstreams.ts";

const JSON_TYPE = "content-type: application/json";
const failed = (fault: string) => ({ kind: "failed", fault, sent: true });
const answered = (status: number, text: string, retryAfterS?: number) => ({
	...{ kind: "answered", status, retryAfterS },
	body: Buffer.from(text),
});

/** The upstream's bytes, the result, and the symptom that is reported; undefined: none. */
const ANSWERS: readonly (readonly [string, object, Symptom | undefined])[] = [
	[httpText("{}", "200 OK", [JSON_TYPE]), answered(200, "{}"), undefined],
	[httpText("{}"), answered(200, "{}"), undefined],
	[
		httpText("<html>", "200 OK", ["content-type: text/html"]),
		answered(200, "<html>"),
		{ status: 200, type: "text/html", location: undefined },
	],
	[
		httpText("", "302 Found", ["location: /elsewhere"]),
		answered(302, ""),
		{ status: 302, type: undefined, location: "/elsewhere" },
	],
	...(
		[
			["7", 7],
			["Thu, 01 Jan 2026 00:00:30 GMT", 30],
			["Thu, 01 Jan 2015 00:00:30 GMT", 0],
			["-5.5", undefined],
		] as const
	).map(
		([value, seconds]) =>
			[
				httpText("busy", "503 Busy", [`retry-after: ${value}`]),
				answered(503, "busy", seconds),
				{ status: 503, type: undefined, location: undefined },
			] as const,
	),
	[
		httpText("{}", "508 Loop Detected", ["x-boost-loop: 1", JSON_TYPE]),
		failed("loop"),
		{ status: 508, type: "application/json", location: undefined },
	],
	[
		httpText("{}", "508 Loop Detected", [JSON_TYPE]),
		answered(508, "{}"),
		{ status: 508, type: "application/json", location: undefined },
	],
	[
		httpText("zipped", "200 OK", ["content-encoding: zstd", JSON_TYPE]),
		failed("notJsonRpc"),
		{ status: 200, type: "application/json", encoding: "zstd", location: undefined },
	],
	[
		httpText("x".repeat(2_000), "200 OK", [JSON_TYPE]),
		failed("tooLarge"),
		{ status: 200, type: "application/json", encoding: undefined, location: undefined },
	],
];

test("an answer is read with its Retry-After; a loop and an invalid answer are faults, and reported", async () => {
	let text = "";
	const upstream = await RawUpstream.start(({ socket }) => void socket.write(text));
	const reports: Symptom[] = [];
	const transport = new HttpTransport(
		{ url: upstream.url, maxAnswerBytes: 1_024 },
		{ clock: new ManualClock(), onSymptom: (symptom) => reports.push(symptom) },
	);
	for (const [answer, expected, symptom] of ANSWERS) {
		text = answer;
		const post = { target: "/fast", body: "{}", headers: {}, deadlineMs: 60_000 };
		assert.deepEqual(await transport.post(post), expected, answer.slice(0, 60));
		assert.deepEqual(await transport.get("/readyz", 60_000), expected, answer.slice(0, 60));
		assert.deepEqual(reports.splice(0), symptom === undefined ? [] : [symptom, symptom], answer.slice(0, 60));
	}
	await transport.close();
	await upstream.close();
});
