// How what was passed through to the relay ended, as values for whoever counts.

export const PASS_KINDS = ["http", "websocket"] as const;
export type PassKind = (typeof PASS_KINDS)[number];

/**
 * `answered` by the relay, or upgraded; `unavailable`: the relay was out or could not be reached; `failed`: it took the
 * request and did not answer; `gone`: its client went first.
 */
export const PASS_OUTCOMES = ["answered", "unavailable", "failed", "gone"] as const;
export type PassOutcome = (typeof PASS_OUTCOMES)[number];

/** Told once of each request and each upgrade. */
export type OnPassed = (kind: PassKind, outcome: PassOutcome) => void;
