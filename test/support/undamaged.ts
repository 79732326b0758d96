// For stores in which nothing is damaged.

import { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import { silentLogger } from "../../shared/log.ts";

export const UNDAMAGED = new DamagedEntries({ log: silentLogger });
