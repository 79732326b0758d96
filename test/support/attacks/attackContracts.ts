// Attackers' contracts as bytecode; comments give the instructions.

/**
 * Burns its gas down to 60,000, then pays the value of the call to the coinbase. JUMPDEST, PUSH3
 * 60,000 GAS GT PUSH0 JUMPI; then CALL(GAS, COINBASE, CALLVALUE) STOP
 */
export const BURNS_AND_PAYS = "0x5b6200ea605a115f575f5f5f5f34415af100";

/**
 * Emits as many events as its input says, each with its number as topic. PUSH0 CALLDATALOAD;
 * JUMPDEST, DUP1 ISZERO PUSH1 end JUMPI, PUSH1 1 SWAP1 SUB, DUP1 PUSH0 PUSH0 LOG1, PUSH1 2 JUMP;
 * end: JUMPDEST STOP
 */
export const EMITS_MANY = "0x5f355b801560135760019003805f5fa16002565b00";
