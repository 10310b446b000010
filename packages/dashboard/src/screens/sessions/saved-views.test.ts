import { expect, test } from "vitest";
import { readViews, withView } from "./saved-views.ts";

test("a view of the same name is replaced, one without a name is none, and the oldest of many goes", () => {
  const one = { name: "mine", search: { owner: "ada" } };
  const other = { name: " mine ", search: { owner: "bob" } };
  expect(withView([one], other)).toEqual([{ name: "mine", search: { owner: "bob" } }]);
  expect(withView([one], { name: "  ", search: {} })).toEqual([one]);
  const many = Array.from({ length: 20 }, (_, at) => ({ name: `view ${at}`, search: {} }));
  expect(withView(many, one).map(({ name }) => name)).toEqual([
    ...many.slice(1).map(({ name }) => name),
    "mine",
  ]);
});

test("stored views are read as far as they are views", () => {
  expect(readViews(null)).toEqual([]);
  expect(readViews("{")).toEqual([]);
  expect(readViews('{"name":"x"}')).toEqual([]);
  expect(readViews('[null,3,{"name":"x"},{"name":"mine","search":{"status":"failed","other":1}}]')).toEqual([
    { name: "mine", search: { status: "failed" } },
  ]);
});
