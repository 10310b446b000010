import { expect, test } from "vitest";
import { binaryArray } from "./binary-arrays.ts";
import { runSql, sharedServerUrl } from "../testing/shared-server.ts";

test("every whole number that is one arrives as it is", async () => {
  const far = Number.MAX_SAFE_INTEGER;
  const numbers = [0, 1, -1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, -4_294_967_296, -4_294_967_297, far, -far];
  const bytes = `'\\x${binaryArray("int8", numbers).subarray(20).toString("hex")}'::bytea`;
  // Each is four bytes of length and eight of number.
  const rows = await runSql(
    await sharedServerUrl(),
    `SELECT ('x' || encode(substr(${bytes}, 5 + 12 * n, 8), 'hex'))::bit(64)::int8::text AS number FROM generate_series(0, 9) AS n`,
  );
  expect(rows.map(({ number }) => Number(number))).toEqual(numbers);
});
