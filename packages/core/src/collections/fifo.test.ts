import fc from "fast-check";
import { expect, test } from "vitest";
import { Fifo } from "./fifo.ts";

test("a queue gives its items in the order of an array, whatever is put in and taken out", () => {
  const step = fc.constantFrom("push", "push", "unshift", "shift", "shift", "drain", "many", "few");
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const fifo = new Fifo<number>();
      let model: number[] = [];
      let next = 0;
      for (const each of steps) {
        if (each === "push") fifo.push((model.push(next), next++));
        else if (each === "unshift") fifo.unshift((model.unshift(next), next++));
        else if (each === "shift") expect(fifo.shift()).toBe(model.shift());
        else if (each === "many") for (let i = 0; i < 50; i++) fifo.push((model.push(next), next++));
        else if (each === "few") for (let i = 0; i < 40; i++) expect(fifo.shift()).toBe(model.shift());
        else {
          expect(fifo.drain()).toEqual(model);
          model = [];
        }
        expect(fifo.size).toBe(model.length);
        expect(fifo.first).toBe(model[0]);
      }
      expect([...fifo]).toEqual(model);
    }),
  );
});
