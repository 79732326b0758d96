// Properties of all orders of events with one unusual event: some hundreds of runs.

import { describeOrders } from "./orders.ts";

describeOrders(1);
