// The sandbox of agents that name none, in mode cloud.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { trustContent } from "@holdfast/agents";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { findSandbox } from "../agents/sandbox-settings.ts";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open({ DAYTONA_API_KEY: undefined });
  agentFile("reader", "");
});
afterEach(() => project.dispose());

const CLOUD = { HOLDFAST_MODE: "cloud" };

function agentFile(name: string, fields: string): void {
  writeFileSync(
    project.path(`${name}.md`),
    `---\nname: ${name}\ndescription: Helps.\n${fields}---\nYou help.\n`,
  );
}

const run = (file: string, env: Readonly<Record<string, string>>) =>
  project.finish(["run", file, "Read."], { stdin: "", env });

test(
  "a sandbox of the environment, a sandbox of the file and an agent of code need no key",
  ofCampaign,
  async () => {
    agentFile("boxed", "holdfast: { sandbox: virtual }\n");
    writeFileSync(project.path("code.ts"), "export default async () => 1;\n");
    const finished = [
      await run("reader.md", { ...CLOUD, HOLDFAST_SANDBOX: "filesystem" }),
      await run("boxed.md", CLOUD),
      await project.finish(["run", "code.ts"], { stdin: "", env: CLOUD }),
    ];
    expect(finished.map(({ code, stderr }) => (code === 0 ? 0 : stderr))).toEqual([0, 0, 0]);
  },
);

test(
  "a session that began with another sandbox is resumed in mode cloud without a key",
  ofCampaign,
  async () => {
    project.server.setFaults({ 1: { type: "rate_limited", retryAfterSeconds: 7_200 } });
    const args = ["run", "reader.md", "Read.", "--session", "s"];
    expect((await project.finish(args, { stdin: "" })).code).toBe(7);
    project.server.setFaults();
    const resumed = await project.finish(["resume", "s"], { stdin: "", env: CLOUD });
    expect(resumed.code, resumed.stderr).toBe(0);
  },
);

test("with a key the service is asked, and with one that it refuses nothing starts", ofCampaign, async () => {
  const keys: (string | undefined)[] = [];
  const service: Server = createServer(({ headers }, response) => {
    keys.push(headers.authorization);
    response.writeHead(401).end();
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const DAYTONA_API_URL = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const child = project.start(["run", "reader.md", "Read."], {
    stdin: "",
    env: { ...CLOUD, DAYTONA_API_KEY: "a-key", DAYTONA_API_URL },
  });
  expectError(await child.finished, 12, "E_POLICY_DENIED", ["daytona answered 401", "HOLDFAST_SANDBOX"]);
  expect(new Set(keys)).toEqual(new Set(["Bearer a-key"]));
  service.close();
});

test("a runner in mode cloud does not start with an agent file that has no sandbox", ofCampaign, async () => {
  const args = ["runner", "--mode", "cloud", "-c", "http://127.0.0.1:1", "--agents", "reader.md"];
  expectError(await project.start(args, { stdin: "" }).finished, 12, "E_POLICY_DENIED", [
    "DAYTONA_API_KEY is not set",
    "HOLDFAST_SANDBOX",
  ]);
});

test("the configuration of a project does not choose less than that of the user", () => {
  const env = { HOME: project.home, XDG_CONFIG_HOME: join(project.home, "config") };
  const configure = (path: string, mode: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify({ mode }));
    trustContent(join(project.home, ".local/share/holdfast/trusted-folders.json"), project.folder, path);
  };
  const find = (more = {}) => findSandbox({ cwd: project.folder, env: { ...env, ...more } }).value;
  configure(project.path(".holdfast/config.json"), "local");
  expect(find()).toBe("filesystem");
  configure(join(project.home, "config/holdfast/config.json"), "cloud");
  expect(find()).toBe("daytona");
  expect(find({ HOLDFAST_MODE: "local" })).toBe("filesystem");
  configure(project.path(".holdfast/config.json"), "cloud");
  expect(find()).toBe("daytona");
});
