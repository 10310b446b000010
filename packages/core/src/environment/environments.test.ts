import { expect, test } from "vitest";
import { checkValue, ENVIRONMENT_LIMITS } from "./environments.ts";

test.each(["a", "é", "€", "😀", "\ud800"])("the limit of a value of %j counts its bytes as UTF-8", (text) => {
  const { length } = Buffer.from(text);
  const { valueBytes } = ENVIRONMENT_LIMITS;
  const fits = text.repeat(Math.floor(valueBytes / length)) + "a".repeat(valueBytes % length);
  expect(Buffer.byteLength(fits)).toBe(valueBytes);
  expect(() => checkValue("KEY", fits)).not.toThrow();
  expect(() => checkValue("KEY", `${fits}a`)).toThrow("the value of KEY cannot be used");
});
