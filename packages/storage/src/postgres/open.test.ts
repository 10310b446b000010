// How a database is found, made and refused: nobody may be left with a stack trace, or with their password in
// a log.

import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { openPostgresReader, openPostgresStorage, type PostgresStorage } from "./index.ts";
import { toStorageError } from "./database/pg-errors.ts";
import { Database } from "./database/database.ts";
import { prepare } from "./tables/migrations.ts";
import { SCHEMA_VERSION, STEPS } from "./tables/schema.ts";
import { LOCKED_USER, newSchema, runSql, sharedServerUrl } from "./testing/shared-server.ts";

let url: string;
let opened: PostgresStorage[];

beforeAll(async () => {
  url = await sharedServerUrl();
  opened = [];
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((storage) => storage.close()));
});

async function open(schema: string): Promise<PostgresStorage> {
  const storage = await openPostgresStorage({ url, schema });
  opened.push(storage);
  return storage;
}

function changed(change: (url: URL) => void): string {
  const other = new URL(url);
  change(other);
  return other.href;
}

describe("an address that does not lead to a database", () => {
  test.each(["", "localhost", "mysql://localhost/x", "/var/run/postgres", "postgres//x:secret@host"])(
    "%j is refused as no URL",
    async (text) => {
      const refused = expect(openPostgresStorage({ url: text })).rejects;
      await refused.toMatchObject({ name: "UsageError", expected: expect.stringContaining("postgres://") });
    },
  );

  test("nobody answers there", async () => {
    // Port 1 is never given out.
    const nowhere = "postgres://me:secret@127.0.0.1:1/x";
    const error: unknown = await openPostgresStorage({ url: nowhere }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "storage_unavailable", at: expect.stringContaining("127.0.0.1:1") });
    expect(textOf(error)).not.toContain("secret");
  });

  test("the database does not exist", async () => {
    const elsewhere = changed((other) => (other.pathname = "/none"));
    const refused = expect(openPostgresStorage({ url: elsewhere })).rejects;
    await refused.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringContaining("no such database"),
      fix: expect.stringContaining("CREATE DATABASE"),
    });
  });

  // A server that was set up outside these tests may let everybody in.
  test.runIf(process.env["HOLDFAST_TEST_POSTGRES_URL"] === undefined)(
    "the password is wrong, and appears in no message",
    async () => {
      const wrong = changed((other) => {
        other.username = LOCKED_USER;
        other.password = "opensesame";
      });
      const error: unknown = await openPostgresStorage({ url: wrong }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code: "storage_unavailable",
        message: expect.stringContaining("does not let us in"),
      });
      expect(textOf(error)).not.toContain("opensesame");
      expect(textOf(error)).toContain(LOCKED_USER);
    },
  );
  // An error that only a person can fix is reported as such, and not as a server that is away.
  describe("a way in that is not set up", () => {
    afterEach(() => vi.unstubAllEnvs());
    const refusalOf = async (text: string): Promise<unknown> =>
      openPostgresStorage({ url: text }).catch((thrown: unknown) => thrown);

    // A server that was set up outside these tests may let everybody in, and offer TLS.
    const isOurs = process.env["HOLDFAST_TEST_POSTGRES_URL"] === undefined;

    // See above.
    test.runIf(isOurs)("a missing password is reported, and how to give one", async () => {
      vi.stubEnv("PGPASSWORD", undefined);
      vi.stubEnv("PGPASSFILE", "/none");
      const locked = changed((other) => Object.assign(other, { username: LOCKED_USER, password: "" }));
      expect(await refusalOf(locked)).toMatchObject({
        code: "storage_unavailable",
        message: expect.stringContaining("asks for a password"),
        fix: expect.stringContaining("PGPASSWORD"),
      });
    });

    // See above.
    test.runIf(isOurs)("a server that does not offer the required TLS is reported", async () => {
      expect(await refusalOf(changed((other) => (other.search = "?sslmode=verify-full")))).toMatchObject({
        code: "storage_unavailable",
        message: expect.stringContaining("does not offer it"),
      });
    });

    test.each([
      "unable to verify the first certificate; if the root CA is installed locally, try running Node.js with --use-system-ca",
      "Hostname/IP does not match certificate's altnames: IP: 127.0.0.1 is not in the cert's list: ",
      "self-signed certificate in certificate chain",
    ])("a certificate that Node does not believe is reported: %s", (text) => {
      const thrown = Object.assign(new Error(text), { code: "ERR_TLS_SOMETHING" });
      expect(toStorageError(thrown, "there", "opening it")).toMatchObject({
        code: "storage_unavailable",
        message: expect.stringContaining("is not believed"),
        fix: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
      });
    });

    test("a missing file of the certificate authority is reported", async () => {
      const missing = changed((other) => (other.search = "?sslmode=verify-full&sslrootcert=/none.pem"));
      expect(await refusalOf(missing)).toMatchObject({
        code: "storage_unavailable",
        message: expect.stringContaining("a file that the URL names"),
        got: expect.stringContaining("/none.pem"),
      });
    });
  });
});

/** All that can be printed of an error, its causes included. */
function textOf(error: unknown): string {
  const { message, at, got, expected, fix, stack, cause } = error as Error & Record<string, unknown>;
  const more = cause === undefined ? "" : textOf(cause);
  return [message, at, got, expected, fix, stack, more].join("\n");
}

describe("the schema", () => {
  test("many processes that open a new schema at the same time make it once", async () => {
    const schema = newSchema();
    const storages = await Promise.all(Array.from({ length: 8 }, () => open(schema)));
    const results = await Promise.all(
      storages.map((storage, i) => storage.commit([creating(`ses-${i}`)], 1)),
    );
    expect(results.flat().every(({ status }) => status === "created")).toBe(true);
    const rows = await runSql(url, `SELECT key, value FROM ${schema}.meta ORDER BY key`);
    expect(rows).toEqual([
      { key: "lanes", value: "8" },
      { key: "schema_version", value: String(SCHEMA_VERSION) },
    ]);
  });

  test("a schema of a newer version is refused, and none of its tables changes", async () => {
    const schema = newSchema();
    await (await open(schema)).commit([creating("ses-1")], 1);
    await runSql(url, `UPDATE ${schema}.meta SET value = '99' WHERE key = 'schema_version'`);
    const contents = () => runSql(url, `SELECT schema_to_xml('${schema}', true, false, '')::text AS tables`);
    const columns = () =>
      runSql(
        url,
        `SELECT table_name, column_name, data_type FROM information_schema.columns
         WHERE table_schema = '${schema}' ORDER BY 1, 2`,
      );
    const before = [await contents(), await columns()];
    for (const openIt of [openPostgresStorage, openPostgresReader]) {
      await expect(openIt({ url, schema })).rejects.toMatchObject({
        code: "version_unsupported",
        at: expect.stringContaining(schema),
        got: "schema version 99",
        expected: `schema version ${SCHEMA_VERSION} or older`,
        fix: expect.stringContaining("newer Holdfast"),
      });
    }
    expect([await contents(), await columns()]).toEqual(before);
  });

  // As the next version would do it. Nothing of this checks what a real step does.
  test("tables of version 1 are brought to a planted version 2, by several processes at the same time", async () => {
    const schema = newSchema();
    const storage = await open(schema);
    await storage.commit([creating("ses-1")], 1);
    const steps = [...STEPS, "ALTER TABLE session ADD COLUMN planted text NOT NULL DEFAULT 'yes'"];
    const databases = Array.from({ length: 4 }, () => {
      return new Database({ url, schema, connectionsMax: 1, connectTimeoutMs: 10_000 });
    });
    const prepared = await Promise.all(
      databases.map((db) => prepare(db, { schema, lanes: 3, at: "planted" }, steps)),
    );
    expect(prepared.map(({ lanes }) => lanes)).toEqual([8, 8, 8, 8]);
    expect(await runSql(url, `SELECT session_id, planted FROM ${schema}.session`)).toEqual([
      { session_id: "ses-1", planted: "yes" },
    ]);
    await Promise.all(databases.map((db) => db.close()));
    // A process of version 1 that was there before goes on; none that opens it now does.
    expect(await storage.commit([creating("ses-2")], 1)).toEqual([{ status: "created" }]);
    await expect(openPostgresStorage({ url, schema })).rejects.toMatchObject({ got: "schema version 2" });
  });

  test("a step that fails leaves the tables as they were", async () => {
    const schema = newSchema();
    await (await open(schema)).commit([creating("ses-1")], 1);
    const db = new Database({ url, schema, connectionsMax: 1, connectTimeoutMs: 10_000 });
    const failing = [...STEPS, "DROP TABLE entry; SELECT 1 / 0"];
    await expect(prepare(db, { schema, lanes: 8, at: "planted" }, failing)).rejects.toThrow(
      "division by zero",
    );
    await db.close();
    expect(await (await open(schema)).load("ses-1")).toBeDefined();
    expect(await runSql(url, `SELECT count(*)::int AS rows FROM ${schema}.entry`)).toEqual([{ rows: 0 }]);
  });

  test("the lanes of a schema are chosen when it is made, and kept", async () => {
    const schema = newSchema();
    opened.push(await openPostgresStorage({ url, schema, lanes: 3 }));
    const again = await openPostgresStorage({ url, schema, lanes: 5 });
    opened.push(again);
    await again.commit(
      Array.from({ length: 50 }, (_, i) => creating(`ses-${i}`)),
      1,
    );
    const lanes = await runSql(url, `SELECT DISTINCT lane FROM ${schema}.state ORDER BY lane`);
    expect(lanes).toEqual([{ lane: 0 }, { lane: 1 }, { lane: 2 }]);
  });

  test("a session is in the lane of its parent", async () => {
    const schema = newSchema();
    const storage = await open(schema);
    for (let i = 0; i < 10; i++) {
      const parent = { sessionId: i === 0 ? "ses-root" : `ses-${i - 1}`, child: 0, onEnd: "cancel" } as const;
      if (i === 0) await storage.commit([creating("ses-root")], 1);
      await storage.commit([{ ...creating(`ses-${i}`), parent }], 1);
    }
    expect(await runSql(url, `SELECT count(DISTINCT lane)::int AS lanes FROM ${schema}.state`)).toEqual([
      { lanes: 1 },
    ]);
  });

  // A server that was set up outside these tests may not let us make users.
  test.runIf(process.env["HOLDFAST_TEST_POSTGRES_URL"] === undefined)(
    "a schema that was made for a user who may create none is used",
    async () => {
      const schema = newSchema();
      const user = `user_${schema.slice(-24)}`;
      await runSql(url, `CREATE ROLE ${user} LOGIN; CREATE SCHEMA ${schema} AUTHORIZATION ${user}`);
      const mine = changed((other) => void (other.username = user));
      const storage = await openPostgresStorage({ url: mine, schema });
      expect(await storage.commit([creating("ses-1")], 1)).toEqual([{ status: "created" }]);
      await storage.close();
      await expect(openPostgresStorage({ url: mine, schema: newSchema() })).rejects.toMatchObject({
        code: "storage_readonly",
      });
      await runSql(url, `DROP OWNED BY ${user} CASCADE; DROP ROLE ${user}`);
    },
  );

  test("a name that has to be quoted is quoted", async () => {
    const storage = await open(`Test "${newSchema()}"; --`);
    expect(await storage.commit([creating("ses-1")], 1)).toEqual([{ status: "created" }]);
  });
});

test("a storage that was closed says so, and closing twice is closing once", async () => {
  const storage = await open(newSchema());
  await Promise.all([storage.close(), storage.close()]);
  await expect(storage.commit([creating("ses-1")], 1)).rejects.toMatchObject({
    code: "storage_unavailable",
    message: expect.stringContaining("was closed"),
  });
  await expect(storage.reader.session("ses-1")).rejects.toMatchObject({ code: "storage_unavailable" });
});

// The clock of one process must not matter to another process.
test("D3: the storage answers the database's time where that is asked for, whatever this machine's clock says", async () => {
  vi.spyOn(Date, "now").mockReturnValue(5);
  const storage = await openPostgresStorage({ url, schema: newSchema(), clock: "database" });
  opened.push(storage);
  const [row] = await runSql(url, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now");
  expect(Math.abs(storage.now!() - (row!["now"] as number))).toBeLessThan(60_000);
  vi.restoreAllMocks();
  const other = await openPostgresStorage({ url, schema: newSchema() });
  opened.push(other);
  expect(other.now).toBeUndefined();
});

function creating(sessionId: string) {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1 } as const;
}
