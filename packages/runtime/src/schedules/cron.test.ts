// Twice a year a clock shows a time twice, or not at all. A schedule must fire once all the same.

import { HoldfastError } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { readCron } from "./cron.ts";

/** The next times after a moment in ISO format, without seconds if these are all zero. */
function times(line: string, zone: string, from: string, count: number): string[] {
  const cron = readCron(line, zone);
  const found: string[] = [];
  let moment = Date.parse(from);
  while (found.length < count) {
    moment = cron.after(moment);
    found.push(new Date(moment).toISOString().replace(":00.000Z", "Z"));
  }
  return found;
}

describe("times of a line", () => {
  test("the times of a line are in its zone, and after the given moment", () => {
    expect(times("30 9 * * 1-5", "Asia/Kolkata", "2026-11-20T04:00:00Z", 2)).toEqual([
      "2026-11-23T04:00Z",
      "2026-11-24T04:00Z",
    ]);
    expect(times("* * * * *", "UTC", "2026-11-20T04:00:59.999Z", 2)).toEqual([
      "2026-11-20T04:01Z",
      "2026-11-20T04:02Z",
    ]);
    expect(times("*/20 * * * * *", "Europe/Berlin", "2026-11-20T04:00:00Z", 3)).toEqual([
      "2026-11-20T04:00:20.000Z",
      "2026-11-20T04:00:40.000Z",
      "2026-11-20T04:01Z",
    ]);
    expect(times("0 0 29 2 *", "UTC", "2026-11-20T04:00:00Z", 1)).toEqual(["2028-02-29T00:00Z"]);
  });

  test("each time of a line is found from right before it", () => {
    const cron = readCron("*/10 * * * *", "Europe/Berlin");
    for (const day of ["2026-03-29", "2026-10-25", "2026-11-20"]) {
      for (let at = Date.parse(day); at < Date.parse(day) + 6 * 3_600_000; at += 600_000) {
        expect(cron.after(at - 1), new Date(at).toISOString()).toBe(at);
      }
    }
  });
});

describe("a clock that is put forward", () => {
  // In Berlin 02:00 to 03:00 does not exist on 2026-03-29: 01:00Z is 03:00.
  test("cron-1: a time in the gap is the first moment after it", () => {
    expect(times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("cron-1: several times in the gap are one", () => {
    expect(times("0,15,45 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:00Z",
    ]);
    expect(times("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3)).toEqual([
      "2026-03-29T00:30Z",
      "2026-03-29T01:00Z",
      "2026-03-29T01:30Z",
    ]);
  });

  test("cron-1: a time in a gap of half an hour or at midnight is the first moment after it", () => {
    expect(times("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 1)).toEqual([
      "2026-10-03T15:30Z",
    ]);
    expect(times("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", 2)).toEqual([
      "2026-04-23T22:00Z",
      "2026-04-24T21:00Z",
    ]);
  });
});

describe("a clock that is put back", () => {
  // In Berlin 02:00 to 03:00 exists twice on 2026-10-25: from 00:00Z, and from 01:00Z.
  test("cron-2: a time that exists twice is the first", () => {
    expect(times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30Z",
      "2026-10-26T01:30Z",
    ]);
    expect(times("0 */2 * * *", "Europe/Berlin", "2026-10-24T21:00:00Z", 4)).toEqual([
      "2026-10-24T22:00Z",
      "2026-10-25T00:00Z",
      "2026-10-25T03:00Z",
      "2026-10-25T05:00Z",
    ]);
  });

  test("cron-2: the second of two equal times is not found from between the two or within the second hour", () => {
    for (const from of ["00:31", "00:59", "01:00", "01:29"])
      expect(times("30 2 * * *", "Europe/Berlin", `2026-10-25T${from}:00Z`, 1)).toEqual([
        "2026-10-26T01:30Z",
      ]);
  });

  test.each(["*", "*/1", "0-23", "0-23/1", "0-11,12-23", "3-23,0-3"])(
    "cron-3: hourly never pauses, also with %s as the field of the hour",
    (hours) => {
      const from = ["Europe/Berlin", "2026-10-24T23:00:00Z", 3] as const;
      const berlin = ["2026-10-25T00:00Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z"];
      expect(times(`0 ${hours} * * *`, ...from)).toEqual(berlin);
      expect(times(`0 0 ${hours} * * 0`, ...from)).toEqual(berlin);
    },
  );

  test("cron-3: a line that takes every hour has times in both hours", () => {
    expect(times("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z", 6)).toEqual([
      "2026-10-25T00:00Z",
      "2026-10-25T00:30Z",
      "2026-10-25T01:00Z",
      "2026-10-25T01:30Z",
      "2026-10-25T02:00Z",
      "2026-10-25T02:30Z",
    ]);
    expect(times("5 * * * *", "Europe/Berlin", "2026-10-25T00:05:00Z", 2)).toEqual([
      "2026-10-25T01:05Z",
      "2026-10-25T02:05Z",
    ]);
  });
});

describe("a wrong line", () => {
  const refusal = (line: string, zone = "UTC"): HoldfastError => {
    try {
      readCron(line, zone).after(0);
    } catch (error) {
      if (HoldfastError.is(error)) return error;
      throw error;
    }
    throw new Error(`"${line}" in "${zone}" was taken`);
  };

  test.each([
    ["", "0 fields"],
    ["* * * *", "4 fields"],
    ["* * * * * * *", "7 fields"],
    ["@daily", "1 field"],
    ["61 * * * *", "minute: 61"],
    ["* 24 * * *", "hour: 24"],
    ["a b c d e", "illegal"],
    ["*/0 * * * *", "0"],
    ["0 0 30 2 *", "never"],
    ["* * * *\n*", "several lines"],
  ])("the line %o is refused with what is wrong in it", (line, what) => {
    const error = refusal(line);
    expect(error).toMatchObject({ code: "usage", at: "cron", got: line === "" ? "nothing" : line });
    expect(error.message).toContain(what);
    expect(error.expected).toContain("five or six fields");
  });

  test.each(["", "Mars/Olympus", "+01:00", "Berlin", "Europe/Berlin "])("the zone %o is refused", (zone) => {
    expect(refusal("* * * * *", zone)).toMatchObject({ code: "usage", at: "timeZone" });
  });
});
