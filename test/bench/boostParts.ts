// Measures what boost does with a submission beside sending it on, each part alone, and prints the CPU times in µs as
// one line of JSON.

import { decode, micros, put } from "./partTimes.ts";

/** A transaction of 200 bytes, and what is known of it. */
const RECORD_BYTES = 560;

const decodeMicros = await micros(decode);
const putMicros = await micros(() => put(RECORD_BYTES));
process.stdout.write(`parts ${JSON.stringify({ decodeMicros, putMicros })}\n`);
