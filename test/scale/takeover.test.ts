// Another relay takes over when the core ends, by events alone. takeover.nightly.ts also judges how
// long it takes.

import { testTakeovers } from "./takeover.ts";

testTakeovers({ isTimed: false });
