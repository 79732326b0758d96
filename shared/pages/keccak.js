// Keccak-256 as Ethereum has it (not NIST's SHA3-256), for what a wallet signs: no server's answer is trusted for that. Written
// for short texts: a few milliseconds each. https://keccak.team/keccak_specs_summary.html

const LANE = (1n << 64n) - 1n;
const ROUNDS = 24;
/** Bytes that go in before each permutation. */
const RATE = 136;
const FIVE = [0, 1, 2, 3, 4];

function rotated(lane, by) {
	return ((lane << by) | (lane >> (64n - by))) & LANE;
}

/** Keccak-f[1600] on 25 lanes of 64 bits; lane x + 5y is in column x and row y. */
function permute(lanes) {
	let lfsr = 1;
	for (let round = 0; round < ROUNDS; round += 1) {
		const parity = FIVE.map((x) => FIVE.reduce((sum, y) => sum ^ lanes[x + 5 * y], 0n));
		for (let i = 0; i < 25; i += 1) lanes[i] ^= parity[(i + 4) % 5] ^ rotated(parity[(i + 1) % 5], 1n);
		let [x, y, moved] = [1, 0, lanes[1]];
		for (let step = 1; step < 25; step += 1) {
			[x, y] = [y, (2 * x + 3 * y) % 5];
			const place = x + 5 * y;
			const by = BigInt(((step * (step + 1)) / 2) % 64);
			[lanes[place], moved] = [rotated(moved, by), lanes[place]];
		}
		for (const row of FIVE.map((n) => 5 * n)) {
			const before = lanes.slice(row, row + 5);
			for (const n of FIVE) lanes[row + n] = before[n] ^ (~before[(n + 1) % 5] & LANE & before[(n + 2) % 5]);
		}
		for (let bit = 0; bit < 7; bit += 1) {
			lfsr = ((lfsr << 1) ^ ((lfsr >> 7) * 0x71)) % 256;
			if ((lfsr & 2) !== 0) lanes[0] ^= 1n << BigInt((1 << bit) - 1);
		}
	}
}

/** The hash of `bytes`, as 0x and 64 hex digits. @param {Uint8Array} bytes */
export function keccak256(bytes) {
	const padded = new Uint8Array((Math.floor(bytes.length / RATE) + 1) * RATE);
	padded.set(bytes);
	padded[bytes.length] ^= 0x01;
	padded[padded.length - 1] ^= 0x80;
	const view = new DataView(padded.buffer);
	const lanes = new Array(25).fill(0n);
	for (let start = 0; start < padded.length; start += RATE) {
		for (let at = 0; at < RATE; at += 8) lanes[at / 8] ^= view.getBigUint64(start + at, true);
		permute(lanes);
	}
	const hash = new DataView(new ArrayBuffer(32));
	for (let i = 0; i < 4; i += 1) hash.setBigUint64(8 * i, lanes[i], true);
	return hexOf(new Uint8Array(hash.buffer));
}

/** 0x and two digits for each byte. @param {Uint8Array} bytes */
export function hexOf(bytes) {
	return `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
