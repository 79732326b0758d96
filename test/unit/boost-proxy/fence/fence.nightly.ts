// All orders with up to three unusual events: a hundred thousand runs.

import { describeOrders } from "./orders.ts";

describeOrders(3);
