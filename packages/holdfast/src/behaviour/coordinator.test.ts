// `holdfast coordinator` and `holdfast token` as processes: over a file, through kills, and with what is
// wrong.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { verifyAudit, type HoldfastError } from "@holdfast/core";
import { openSqliteReader } from "@holdfast/storage/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { COORDINATOR_SCHEMA, readCoordinatorFile } from "@holdfast/place/settings/coordinator-config";
import {
  call,
  completing,
  registerRunner,
  startCoordinator,
  tokenIn,
  type Coordinator,
} from "../testing/coordinator-process.ts";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.dispose());

const start = (...args: string[]): Promise<Coordinator> => startCoordinator(project, ...args);

describe("holdfast coordinator", () => {
  test("the first start writes the admin's token for this user alone, keeps it, and shows it nowhere else", async () => {
    const first = await start();
    const token = tokenIn(first);
    expect(token).toMatch(/^hf_adm_/);
    expect(statSync(first.adminTokenFile).mode & 0o777).toBe(0o600);
    first.process.kill("SIGINT");
    const { code, stdout, stderr } = await first.process.finished;
    expect(code).toBe(130);
    expect(stdout + stderr).not.toContain(token.slice(7, 40));
    const second = await start();
    expect(tokenIn(second)).toBe(token);
    expect((await call(second.url, token, "sessions")).code).toBeUndefined();
    expect(readFileSync(project.path("fleet.db"), "latin1")).not.toContain(token.slice(7, 40));
  });

  test("the coordinator says what to do next, with its own address", ofCampaign, async () => {
    const coordinator = project.start(["coordinator", "--storage", "memory:", "--port", "0"]);
    await coordinator.says(/listens on (http:\/\/127\.0\.0\.1:\d+)[^]*token create NAME --url \1\./);
  });

  test("the coordinator never shows an address that cannot be called", ofCampaign, async () => {
    const args = ["--host", "0.0.0.0", "--port", "0", "--insecure"];
    const coordinator = project.start([
      "coordinator",
      "--storage",
      `sqlite:${project.path("any.db")}`,
      ...args,
    ]);
    await coordinator.says(/--url http:\/\/localhost:\d+\./);
  });

  test(
    "O12: killed, what was claimed stays claimed: its runner goes on, nobody else gets it, and all that was acknowledged is there",
    ofCampaign,
    async () => {
      const first = await start();
      const admin = tokenIn(first);
      const runner = await registerRunner(first);
      const { sessionId } = await call(first.url, admin, "sessions", { agent: "greeter", input: 1 });
      const poll = { pollId: "p1", free: 1, waitMs: 10_000, agents: [{ name: "greeter" }] };
      const { claims } = await call(first.url, runner.token, `runners/${runner.runnerId}/poll`, poll);
      expect(claims).toMatchObject([{ sessionId }]);
      const renew = { owner: runner.runnerId, leaseMs: 15_000, sessionIds: [sessionId] };
      await call(first.url, runner.token, "storage/renew", renew);
      await call(first.url, admin, `sessions/${sessionId}/signals`, { name: "go", payload: 7 });
      first.process.kill("SIGKILL");
      await first.process.finished;

      const second = await start();
      const rival = await registerRunner(second);
      const other = await call(second.url, rival.token, `runners/${rival.runnerId}/poll`, {
        ...poll,
        waitMs: 1_500,
      });
      expect(other.claims ?? []).toEqual([]);
      expect(await call(second.url, runner.token, "storage/renew", renew)).toMatchObject({ sessions: 1 });
      const polled = await call(second.url, runner.token, `runners/${runner.runnerId}/poll`, {
        ...poll,
        pollId: "p2",
        free: 0,
      });
      expect(polled.arrivals).toMatchObject([{ sessionId }]);
      const done = await call(
        second.url,
        runner.token,
        "storage/commit",
        completing(sessionId, claims[0].token, "same claim"),
      );
      expect(done.results).toMatchObject([{ status: "committed" }]);
      expect((await call(second.url, admin, `sessions/${sessionId}/result`)).output).toBe("same claim");
      second.process.kill("SIGINT");
      await second.process.finished;
      const reader = openSqliteReader({ path: project.path("fleet.db") });
      const rows = await reader.audit({ limit: 1_000 });
      expect(verifyAudit(rows, (text) => createHash("sha256").update(text).digest("base64url")).status).toBe(
        "intact",
      );
      expect(rows.map(({ action }) => action)).toContain("session.signal");
      reader.close();
    },
  );

  test("O14: a second one on the same file refuses and names the first", ofCampaign, async () => {
    const first = await start();
    const { code, stderr } = await project.run(
      "coordinator",
      "--storage",
      `sqlite:${project.path("fleet.db")}`,
      "--port",
      "0",
    );
    expect(code).toBe(6);
    expect(stderr).toContain("E_LOCKED");
    expect(stderr).toContain(`process ${first.process.child.pid}`);
    expect(stderr).toContain("one coordinator on a SQLite file");
    const taken = await project.run("coordinator", "--storage", "memory:", "--port", new URL(first.url).port);
    const port = new URL(first.url).port;
    expect([taken.code, taken.stderr]).toEqual([
      7,
      expect.stringMatching(
        new RegExp(
          `E_CANNOT_LISTEN.*port ${port}: another process listens there[^]*fix: .*--port \\(0 takes`,
        ),
      ),
    ]);
    // Where a coordinator that listens may have its own.
    expect(existsSync(project.path(".local/share/holdfast/admin-token"))).toBe(false);
  });

  test("a stopped coordinator answers waiting requests, and ends", ofCampaign, async () => {
    const coordinator = await start();
    const admin = tokenIn(coordinator);
    const runner = await registerRunner(coordinator);
    const poll = { pollId: "p1", free: 1, waitMs: 30_000, agents: [{ name: "greeter" }] };
    const waits = call(coordinator.url, runner.token, `runners/${runner.runnerId}/poll`, poll);
    await call(coordinator.url, admin, "runners");
    coordinator.process.kill("SIGTERM");
    expect((await coordinator.process.finished).code).toBe(143);
    expect((await waits).claims ?? []).toEqual([]);
  });

  test.each(sampled(["coordinator", "doctor"]))(
    "%s says that PostgreSQL needs a driver, where there is none",
    async (name) => {
      // As in a project that has installed the packages alone.
      writeFileSync(
        project.path("without-pg.mjs"),
        `import { registerHooks } from "node:module";
       registerHooks({ resolve: (wanted, context, next) =>
         next(wanted, wanted === "pg" ? { ...context, parentURL: import.meta.url } : context) });`,
      );
      const refused = await project.start([name, "--storage", "postgres://u@127.0.0.1:1/d"], {
        env: { NODE_OPTIONS: `--import ${project.path("without-pg.mjs")}` },
      }).finished;
      expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining("npm install pg") });
    },
  );

  test(
    "a wrong setting of the configuration is reported by name, and nothing is started",
    { ...ofCampaign, timeout: 120_000 },
    async () => {
      const file = project.path("c.json");
      const refused: readonly (readonly [content: string, says: string])[] = [
        ['{"prot": 1}', "did you mean port?"],
        ['{"port": -1}', "c.json#/port"],
        ['{"port": 1e9}', "65535"],
        ['{"limits": {"bodyByte": 1}}', "did you mean bodyBytes?"],
        ['{"auth": {"oidc": {}}}', 'has no "auth"'],
        ['{"hosts": "x"}', "a list of texts"],
        ['{"tls": {"cert": "c.pem"}}', '"key" is missing'],
        ["[]", "not a JSON object"],
        ["{\n  oops", "not JSON: unexpected character at line 2, column 3"],
        ['{"origins": ["*"]}', "/origins/0"],
        ['{"origins": ["https://ok.example", "ok.example"]}', "/origins/1"],
        ['{"hosts": ["https://ok.example"]}', "/hosts/0"],
        ['{"storage": ["postgres://u:pass@h/d"]}', "cannot be a list"],
        ['{"storage": "postgres://u:pass@h/d", x}', "not JSON"],
        ["postgres://u:pass@h/d", "not JSON"],
        [" ".repeat(2_000_000), "2000000 bytes"],
        ['{"retention": {"sessions": "a month"}}', "a time span, such as 30d or 12h"],
        ['{"retention": {"audit": "0d"}}', "/retention/audit"],
        ['{"retention": {"session": "30d"}}', "did you mean sessions?"],
      ];
      for (const [content, says] of refused) {
        writeFileSync(file, content);
        const polled = ((): string => {
          try {
            return `it was taken: ${JSON.stringify(readCoordinatorFile(file))}`;
          } catch (error) {
            const { code, message, at, got, expected } = error as HoldfastError;
            return `${code} ${message} ${at} ${got} ${expected}`;
          }
        })();
        expect(polled, content.slice(0, 60)).toMatch(/^config_invalid /);
        expect(polled, content.slice(0, 60)).toContain(says);
        expect(polled).not.toContain("u:pass");
      }
      const unfit: readonly (readonly [content: string, says: string])[] = [
        ['{"prot": 1}', "did you mean port?"],
        ['{"tls": {"cert": "none.pem", "key": "none.pem"}}', "none.pem"],
        ['{"tls": {"cert": "junk.pem", "key": "junk.pem"}}', "cannot be used"],
        ['{"leaseMs": 9000, "renewMs": 4000}', "a third of leaseMs"],
        ['{"leaseMs": 5999}', "from 6000"], // Runners would hold nothing long enough to do anything.
        ['{"host": "0.0.0.0"}', "--insecure"],
      ];
      writeFileSync(project.path("junk.pem"), "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n");
      expect(() => readCoordinatorFile("/dev/null")).toThrow("not a file"); // As a pipe, which may never end.
      for (const [content, says] of unfit) {
        writeFileSync(file, content);
        const args = ["coordinator", "--config", file, "--storage", "memory:", "--port", "0"];
        const { code, stderr, stdout } = await project.run(...args);
        expect([code, stdout], content).toEqual([3, ""]);
        expect(stderr, content).toContain(says);
        expect(stderr, content).not.toMatch(/\n\s+at .*\(/);
      }
      const missing = await project.run("coordinator", "--config", "nope.json");
      expect([missing.code, missing.stderr]).toEqual([3, expect.stringContaining("nope.json")]);
      const storage = await project.run("coordinator", "--storage", "mysql://me:hunter2@db/x");
      expect([storage.code, storage.stderr]).toEqual([2, expect.not.stringContaining("hunter2")]);
      expect((await project.run("coordinator", "--storage", "sqlite:/proc/none/x.db")).code).toBe(10);
      expect((await project.run("coordinator", "--port", "x")).code).toBe(2);
      expect((await project.run("coordinator", "--db", "x")).code).toBe(2);
      // Only where sessions would have been kept is there a folder: for what was refused before, not even
      // that.
      expect(existsSync(project.path(".local/share/holdfast/admin-token"))).toBe(false);
    },
  );

  test(
    "a file that is empty, or has a byte-order mark and the line ends of other systems, is a file",
    ofCampaign,
    async () => {
      const file = project.path("c.json");
      for (const content of ["", '\uFEFF{\r\n  "renewMs": 2000\r\n}\r\n']) {
        writeFileSync(file, content);
        const coordinator = await start("--storage", "memory:", "--config", file);
        coordinator.process.kill("SIGINT");
        await coordinator.process.finished;
      }
    },
  );
});

describe("holdfast token", () => {
  test("the command makes tokens, lists them without their text, and revokes them", ofCampaign, async () => {
    const coordinator = await start();
    const as = ["--url", coordinator.url, "--token-file", coordinator.adminTokenFile];
    const made = await project.run("token", "create", "ada", ...as);
    const token = made.stdout.trim();
    expect(token).toMatch(/^hf_usr_[0-9a-f]{72}$/);
    expect(made.stderr).not.toContain(token);
    expect((await call(coordinator.url, token, "sessions")).code).toBeUndefined();
    const listed = await project.json<readonly { tokenId: string; name: string; kind: string }[]>(
      "token",
      "list",
      ...as,
    );
    expect(listed.map(({ name, kind }) => `${kind} ${name}`).toSorted()).toEqual(["admin first", "user ada"]);
    expect(JSON.stringify(listed)).not.toContain(token.slice(7, 30));
    const { tokenId } = listed.find(({ name }) => name === "ada")!;
    expect((await project.run("token", "revoke", tokenId, ...as)).code).toBe(0);
    expect((await call(coordinator.url, token, "sessions")).code).toBe("token_revoked");
    expect((await project.run("token", "revoke", "0123456789abcdef", ...as)).code).toBe(4);
    const registration = await project.json<{ token: string; expiresAt: number; createdAt: number }>(
      "token",
      "create",
      "box",
      "--kind",
      "registration",
      "--ttl",
      "30m",
      "--owner",
      "ada",
      ...as,
    );
    expect(registration.expiresAt - registration.createdAt).toBe(1_800_000);
    const tooLong = await project.run(
      "token",
      "create",
      "box",
      "--kind",
      "registration",
      "--ttl",
      "12h",
      ...as,
    );
    expect([tooLong.code, tooLong.stderr]).toEqual([2, expect.stringContaining("at most 3600000")]);
  });

  test("the command says what is missing: a coordinator, a token, a right", ofCampaign, async () => {
    const nobody = await project.run("token", "list", "--url", "http://127.0.0.1:9");
    expect([nobody.code, nobody.stderr]).toEqual([5, expect.stringContaining("--token-file")]);
    writeFileSync(project.path("t"), "hf_adm_x");
    const away = await project.run(
      "token",
      "list",
      "--url",
      "http://127.0.0.1:9",
      "--token-file",
      project.path("t"),
    );
    expect([away.code, away.stderr]).toEqual([7, expect.stringContaining("holdfast coordinator")]);
    const coordinator = await start();
    const as = ["--url", coordinator.url];
    const unknown = await project.run("token", "list", ...as, "--token-file", project.path("t"));
    expect([unknown.code, unknown.stderr]).toEqual([
      5,
      expect.stringContaining(`at: the token in ${project.path("t")}`),
    ]);
    expect(unknown.stderr).toMatch(/fix: .*`holdfast token create NAME`.*--token-file, else HOLDFAST_TOKEN/);
    const own = ["--token-file", coordinator.adminTokenFile];
    expect((await project.run("token", "create", "a b", ...as, ...own)).code).toBe(2);
    expect((await project.run("token", "create", "ada", "--kind", "root", ...as, ...own)).code).toBe(2);
    expect((await project.run("token", "list", "--ttl", "1h", ...as, ...own)).code).toBe(2);
    expect((await project.run("token")).code).toBe(2);
    const { stdout: ada } = await project.run("token", "create", "ada", ...as, ...own);
    const env = { HOLDFAST_TOKEN: ada.trim(), HOLDFAST_URL: coordinator.url };
    const asUser = await project.finish(["token", "list"], { env, stdin: "" });
    expect([asUser.code, asUser.stderr]).toEqual([
      5,
      expect.stringContaining("at: the token in HOLDFAST_TOKEN"),
    ]);
    expect(asUser.stderr).toMatch(/expected: a token of kind admin\n  fix: .*admin-token.*--kind admin/);
    const asNobody = await project.finish(["list"], {
      env: { ...env, HOLDFAST_URL: "localhost:1" },
      stdin: "",
    });
    expect([asNobody.code, asNobody.stderr]).toEqual([2, expect.stringContaining("at: HOLDFAST_URL")]);
    expect(asNobody.stderr).toContain("say http://localhost:1");
  });
});

describe("holdfast runs and holdfast runners", () => {
  test("the commands show runs and their runners, drain a runner and delete it", ofCampaign, async () => {
    // However long the commands below take, no runner counts as gone.
    const file = project.path("c.json");
    writeFileSync(file, JSON.stringify({ leaseMs: 600_000 }));
    const coordinator = await start("--config", file);
    const as = ["--url", coordinator.url, "--token-file", coordinator.adminTokenFile];
    const { runnerId, token } = await registerRunner(coordinator);
    for (const sessionId of ["one", "two"])
      await call(coordinator.url, tokenIn(coordinator), "sessions", { agent: "greeter", sessionId });
    const poll = { pollId: "p1", free: 1, waitMs: 5_000, agents: [{ name: "greeter" }] };
    const { claims } = await call(coordinator.url, token, `runners/${runnerId}/poll`, poll);
    // A claim that its runner does not name is released.
    const renew = { owner: "r", leaseMs: 600_000, sessionIds: [claims[0].sessionId] };
    await call(coordinator.url, token, "storage/renew", renew);

    const listed = await project.json<readonly Record<string, unknown>[]>("runs", ...as);
    expect(listed).toMatchObject([
      { runId: `run_one.${claims[0].token}`, status: "claimed", holder: runnerId },
      { runId: "run_two.next", status: "queued", blocked: expect.stringContaining("has a free slot") },
    ]);
    const sessions = await project.json<readonly { agent: object }[]>("list", ...as);
    for (const { agent } of [...listed, ...sessions])
      expect(agent).toEqual({ name: "greeter", version: "1" });
    const shown = await project.run("runs", "--runner", "box-1", ...as);
    expect(shown.stdout).toMatch(/SESSION .*\none .*claimed .* box-1 /);
    expect(shown.stdout).not.toContain("two");
    expect((await project.run("runs", "--status", "lost", ...as)).code).toBe(2);

    const [runner] = await project.json<readonly Record<string, unknown>[]>("runners", "list", ...as);
    expect(runner).toMatchObject({ runnerId, hostname: "box", status: "online", held: 1, maxRuns: 5 });
    expect((await project.run("runners", "list", ...as)).stdout).toMatch(
      /^NAME .* LABELS +AGENTS AND TASKS\nbox-1 +rnr_\S+ +online /,
    );
    expect((await project.run("runners", "show", "box-1", ...as)).stdout).toMatch(/agents +greeter/);
    expect(await project.json("runners", "drain", "box-1", ...as)).toMatchObject({ status: "draining" });
    const [, of] = await project
      .json<readonly Record<string, unknown>[]>("token", "list", ...as)
      .then((all) => all.toSorted((a, b) => String(a["kind"]).localeCompare(String(b["kind"]))));
    expect(of).toMatchObject({ kind: "runner", name: "box", runnerId });
    const { sessionId: one, token: claimed } = claims[0];
    const runId = `run_${one}.${claimed}`;
    const open = await project.json("runs", runId, ...as);
    expect(open).toMatchObject({ runId, ended: false, status: "claimed" });
    const waited = project.json("runs", runId, "--wait", ...as);
    const batch = {
      type: "commit_batch",
      sessionId: one,
      token: claimed,
      firstSeq: 0,
      records: [],
      entries: [],
    };
    const completed = { ...batch, consumed: [], session: { status: "completed", output: '"hello"' } };
    await call(coordinator.url, token, "storage/commit", { changes: [completed] });
    expect(await waited).toMatchObject({ runId, ended: true, outcome: "completed", output: "hello" });
    const ended = await project.run("runs", "--status", "ended", ...as);
    expect(ended.stdout).toMatch(new RegExp(`^RUN .*OUTCOME.*\n${runId} +greeter +completed `));
    expect((await project.run("runs", "run_nobody.1", ...as)).code).toBe(4);

    expect((await project.run("runners", "delete", runnerId, ...as)).code).toBe(0);
    expect((await project.run("runners", "show", runnerId, ...as)).code).toBe(4);
    expect((await call(coordinator.url, token, `runners/${runnerId}/poll`, poll)).code).toBe("token_revoked");
    expect((await project.run("runners", "list", "--db", "x", ...as)).code).toBe(2);
    expect((await project.run("runners")).code).toBe(2);
  });
});

test("docs/coordinator.schema.json is what the code reads files by", () => {
  const published: unknown = JSON.parse(
    readFileSync(new URL("../../../../docs/coordinator.schema.json", import.meta.url), "utf8"),
  );
  expect(published).toEqual(JSON.parse(JSON.stringify(COORDINATOR_SCHEMA)));
});

test(
  "token create -o writes a new file for this user alone, and one that exists is left as it is",
  ofCampaign,
  async () => {
    const coordinator = await start();
    const as = ["--url", coordinator.url, "--token-file", coordinator.adminTokenFile];
    const made = await project.run("token", "create", "ada", "-o", "ada.token", ...as);
    expect(made, made.stderr).toMatchObject({ code: 0, stdout: `${project.path("ada.token")}\n` });
    expect(statSync(project.path("ada.token")).mode & 0o777).toBe(0o600);
    const token = readFileSync(project.path("ada.token"), "utf8").trim();
    expect((await call(coordinator.url, token, "sessions")).code).toBeUndefined();

    expect(await project.run("token", "create", "eve", "-o", "ada.token", ...as)).toMatchObject({ code: 2 });
    expect(readFileSync(project.path("ada.token"), "utf8").trim()).toBe(token);
    // The second token reached nobody.
    const listed = await project.json<{ name: string }[]>("token", "list", ...as);
    expect(listed.map(({ name }) => name)).not.toContain("eve");
  },
);
