// `holdfast env` at a coordinator, as processes: setting, listing, deleting, the keys of its operator, and what
// lies in the file of its database.

import { defined } from "@holdfast/core";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { userToken } from "../testing/coordinator-client.ts";
import { expectError } from "../testing/expect-error.ts";
import { startCoordinator, type CoordinatorProcess } from "../testing/fleet-processes.ts";
import { Project, type Finished } from "../testing/holdfast-process.ts";

const TOKEN = "glpat-the-token-of-ada";

let project: Project;
let coordinator: CoordinatorProcess;
let ada: string;
beforeAll(async () => {
  project = new Project();
  for (const name of ["first", "second"])
    writeFileSync(project.path(`${name}.key`), `${name} key `.repeat(6), { mode: 0o600 });
  coordinator = await startCoordinator(project, { folder: "data", environmentKeys: ["first.key"] });
  ada = await userToken(coordinator, "ada");
});
afterAll(() => project.dispose());

const call = (token: string, args: readonly string[], stdin?: string): Promise<Finished> =>
  project.finish([...args, "--url", coordinator.url], {
    env: { HOLDFAST_TOKEN: token },
    ...defined({ stdin }),
  });
const env = (...args: string[]): Promise<Finished> => call(ada, ["env", ...args]);
async function restart(environmentKeys: readonly string[]): Promise<void> {
  coordinator.process.kill("SIGTERM");
  await coordinator.process.finished;
  coordinator = await startCoordinator(project, { folder: "data", environmentKeys });
}

test("a person sets, lists and deletes environments at a coordinator, and no command shows a secret", async () => {
  expect((await env("list")).stdout).toContain("no environments at the coordinator");
  const { code, stdout, stderr } = await env("set", "staging", "API_URL=https://staging.example");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("staging has API_URL at the coordinator\n");
  await env("set", "staging", "RELEASE", "--required");
  const secret = await call(ada, ["env", "set", "staging", "DEPLOY_TOKEN", "--secret"], `${TOKEN}\n`);
  expect(secret.stdout, secret.stderr).toBe("staging has DEPLOY_TOKEN at the coordinator\n");
  expect((await env("list")).stdout).toMatch(
    /^NAME +KEYS +CHANGED\nstaging +3 keys +API_URL, RELEASE, DEPLOY_TOKEN \(secret\) +\S+ \S+ ada\n$/,
  );
  const shown = await env("show", "staging");
  expect(shown.stdout).toMatch(
    /^API_URL +https:\/\/staging.example\nRELEASE +\(no value\) +required\nDEPLOY_TOKEN +\(secret\)\nchanged .* by ada\n$/,
  );
  const json = JSON.parse((await env("show", "staging", "--json")).stdout);
  expect(json).toMatchObject({
    name: "staging",
    isBase: false,
    keys: { DEPLOY_TOKEN: { secret: true } },
    changedBy: "ada",
  });
  expect(JSON.stringify(json)).not.toContain(TOKEN);
  // This machine has environments of its own.
  expect((await project.run("env", "list")).stdout).toContain("no environments");
  expect((await env("delete", "staging", "RELEASE")).stdout).toBe(
    "RELEASE of staging is deleted at the coordinator\n",
  );
  await env("set", "other", "A=b");
  expect((await env("delete", "other")).stdout).toBe("other is deleted at the coordinator\n");
  expectError(await env("show", "other"), 4, "E_NOT_FOUND", ["holdfast env list --url URL"]);
});

test("wrong calls are refused, and no error repeats a value", async () => {
  expectError(await env("set", "staging", "DEPLOY_TOKEN=value", "--secret"), 2, "E_SECRET_ARG", [
    "others can see it",
  ]);
  expectError(await call(ada, ["env", "set", "s", "A", "B", "--secret"], "x\n"), 2, "E_USAGE", [
    "one secret at a time",
  ]);
  expectError(await env("set", "staging", "API_URL"), 2, "E_USAGE", ["KEY=VALUE"]);
  expectError(await env("list", "--project", "shop"), 5, "E_INSUFFICIENT_SCOPE", ["only an admin"]);
  expectError(await env("rotate"), 5, "E_INSUFFICIENT_SCOPE", []);
  expectError(await call(coordinator.adminToken, ["env", "list"]), 2, "E_USAGE", ["name a project"]);
});

test("a token of a user is made for some projects", async () => {
  const create = ["token", "create", "eve", "--project", "shop", "--project", "bank", "--json"];
  const made = JSON.parse((await call(coordinator.adminToken, create)).stdout);
  expect(made).toMatchObject({ owner: "eve", projects: ["shop", "bank"] });
  const start = ["run", "--agent", "greeter", "--input", "1", "--demand", "project=other"];
  expectError(await call(made.token, start), 5, "E_INSUFFICIENT_SCOPE", [
    "not for sessions of the project other",
  ]);
});

test("the files of the database have no value in the clear", ofCampaign, async () => {
  await call(
    coordinator.adminToken,
    ["env", "set", "staging", "SHOP_KEY", "--secret", "--project", "shop"],
    "of-the-shop\n",
  );
  await restart(["first.key"]); // Its database is whole on the disk.
  const files = readdirSync(project.path("data")).filter((file) => !file.endsWith("-socket"));
  expect(files).toContain("fleet.db");
  for (const file of files) {
    const bytes = readFileSync(project.path(`data/${file}`));
    for (const text of [TOKEN, "staging.example", "of-the-shop"])
      expect(bytes.includes(text), `${file} has ${text}`).toBe(false);
  }
});

test(
  "a coordinator with another key does not start, and the key before it is given up by a rotation",
  ofCampaign,
  async () => {
    const start = (...keys: string[]): Promise<Finished> =>
      project.start([
        "coordinator",
        "--storage",
        `sqlite:${project.path("data/fleet.db")}`,
        "--port",
        "0",
        ...keys.flatMap((key) => ["--environment-key", key]),
      ]).finished;
    coordinator.process.kill("SIGTERM");
    await coordinator.process.finished;
    expectError(await start("second.key"), 5, "E_SECRET_KEY", ["does not have the key", "--environment-key"]);
    writeFileSync(project.path("data/near.key"), "near key ".repeat(6), { mode: 0o600 });
    expectError(await start("data/near.key"), 3, "E_CONFIG_INVALID", [
      "lies in the folder of the database",
      "openssl rand",
    ]);
    coordinator = await startCoordinator(project, {
      folder: "data",
      environmentKeys: ["second.key", "first.key"],
    });
    const rotated = await call(coordinator.adminToken, ["env", "rotate"]);
    expect(rotated.stdout, rotated.stderr).toBe(
      "2 environments at the coordinator, of which 2 had an earlier key; the earlier keys are not needed any more\n",
    );
    await restart(["second.key"]);
    expect((await env("show", "staging")).stdout).toContain("https://staging.example");
  },
);

test(
  "a coordinator without a key says so, and its environments can only be deleted",
  ofCampaign,
  async () => {
    coordinator.process.kill("SIGTERM");
    await coordinator.process.finished;
    coordinator = await startCoordinator(project, { folder: "data" });
    expect(coordinator.process.stdout).toContain("has 2 environments and no key for them");
    for (const args of [
      ["show", "staging"],
      ["set", "staging", "A=b"],
    ])
      expectError(await env(...args), 5, "E_SECRET_KEY", ["--environment-key FILE"]);
    expect((await env("delete", "staging")).code).toBe(0);
  },
);
