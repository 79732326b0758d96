// Reads from Linux the memory of a process, and how long its main thread waited for a processor.
// The wait is subtracted from measurements, since the busy machine causes it.

import { readFileSync, writeFileSync } from "node:fs";

const KIB = 1024;
const NS_PER_MS = 1e6;

/** Memory of the process in bytes: now, and the peak since {@link forgetPeak}. */
export function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
	const status = readFileSync(`/proc/${pid}/status`, "utf8");
	const bytes = (name: string): number =>
		Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? Number.NaN) * KIB;
	return { now: bytes("VmRSS"), peak: bytes("VmHWM") };
}

/** Resets the peak. https://docs.kernel.org/filesystems/proc.html, `clear_refs` */
export function forgetPeak(pid: number): void {
	writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** Milliseconds, in all, that the main thread of the process waited for a processor. */
export function deniedMs(pid: number): number {
	const [, waited] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
	return Number(waited) / NS_PER_MS;
}
