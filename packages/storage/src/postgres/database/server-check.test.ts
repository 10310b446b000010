import { expect, test } from "vitest";
import { runSql, sharedServerUrl } from "../testing/shared-server.ts";
import { assertServer, SERVER_COLUMNS, type ServerRow } from "./server-check.ts";

test("a server before version 13 is refused by its version, and the one of these tests is not", async () => {
  const url = await sharedServerUrl();
  const [server] = (await runSql(url, `SELECT ${SERVER_COLUMNS}`)) as unknown as [ServerRow];
  assertServer(server, url, false);
  const old = { ...server, version: "12.22", number: 120_022 };
  expect(() => assertServer(old, "postgres://me:opensesame@there/x", true)).toThrow(
    expect.objectContaining({
      code: "version_unsupported",
      at: "postgres://me:***@there/x",
      got: "PostgreSQL 12.22",
      expected: "PostgreSQL 13 or newer",
    }),
  );
});
