// Another relay takes over in time when the core ends: it sends within seconds, and clients have an
// answer within a second. takeover.test.ts tests the same events in `npm test`.

import { testTakeovers } from "./takeover.ts";

testTakeovers({ isTimed: true });
