// Attackers' contracts as bytecode; comments give the instructions.

/**
 * Burns its gas down to 60,000, then pays the value of the call to the coinbase. JUMPDEST, PUSH3 60,000 GAS GT PUSH0 JUMPI; then
 * CALL(GAS, COINBASE, CALLVALUE) STOP
 */
export const BURNS_AND_PAYS = "0x5b6200ea605a115f575f5f5f5f34415af100";
