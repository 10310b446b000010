import { expect, test } from "vitest";
import { BEHAVIOUR, BEHAVIOUR_FLAGS, refuseNewerSession } from "./session.ts";

const session = { sessionId: "s", flags: 0, format: 1 };

test("the known behaviour flags are the lowest bits, without a gap", () => {
  const flags = Object.values(BEHAVIOUR).toSorted((a, b) => a - b);
  expect(flags).toEqual(flags.map((_, bit) => 2 ** bit));
});

test("a session with any known flags is taken, and one with any other flag beside them is refused", () => {
  for (let flags = 0; flags <= BEHAVIOUR_FLAGS; flags++) refuseNewerSession({ ...session, flags });
  for (let flag = BEHAVIOUR_FLAGS + 1; flag <= 2 ** 40; flag *= 2)
    for (const known of [0, BEHAVIOUR_FLAGS])
      expect(() => refuseNewerSession({ ...session, flags: flag + known })).toThrow(
        expect.objectContaining({
          code: "version_unsupported",
          got: expect.stringContaining(`${flag + known}`),
        }),
      );
});
