import { expect, test } from "vitest";
import { isOutage } from "./pg-errors.ts";

const ofServer = (code: string) => Object.assign(new Error("refused"), { severity: "ERROR", code });

test.each([
  ["a connection that is lost", Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })],
  ["an answer that does not come", new Error("Query read timeout")],
  ["a server that shuts down", ofServer("57P01")],
  ["a server that takes no writes", ofServer("25006")],
  ["a server with too many connections", ofServer("53300")],
  ["a full disk", ofServer("53100")],
  ["a password that is not taken for now", ofServer("28P01")],
])("%s is an outage", (_what, error) => expect(isOutage(error)).toBe(true));

test.each([
  ["a pool whose connections are all busy", new Error("timeout exceeded when trying to connect")],
  ["a row that another one has changed", ofServer("22012")],
  ["a table that is missing", ofServer("42P01")],
])("%s is none", (_what, error) => expect(isOutage(error)).toBe(false));
