// Registry of the simulation engines: the best one first. Each must pass test/contract/simulationEngine.test.ts.

import type { Engine } from "./engine.ts";
import { ethCall } from "./ethCall.ts";
import { simulateV1 } from "./simulateV1.ts";
import { traceCall } from "./traceCall.ts";

export const ENGINES: readonly Engine[] = [simulateV1, traceCall, ethCall];
