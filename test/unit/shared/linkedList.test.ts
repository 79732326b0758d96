// A list like a Set of what was added, whatever is taken out and when.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LinkedList, type Place } from "../../../shared/linkedList.ts";

test("it holds what was added and not taken out, in order", () =>
	fc.assert(
		fc.property(fc.array(fc.oneof(fc.constant("add"), fc.constant("shift"), fc.nat(20))), (steps) => {
			const list = new LinkedList<number>();
			const model = new Set<number>();
			const places: Place<number>[] = [];
			for (const step of steps) {
				const [first] = model;
				if (step === "add") {
					model.add(places.length);
					places.push(list.add(places.length));
				} else if (step === "shift") {
					assert.equal(list.shift(), first);
					model.delete(first ?? -1);
				} else {
					const place = places[Number(step)];
					if (place !== undefined) assert.equal(list.remove(place), model.delete(place.value));
				}
				assert.deepEqual([list.size, list.first], [model.size, [...model][0]]);
			}
		}),
	));
