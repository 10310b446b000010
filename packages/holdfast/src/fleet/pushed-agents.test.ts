// Agent files at a coordinator, with their skills and scripts: the command pushes them, and a runner whose
// policy allows them offers them. A session keeps its versions.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";
import { outputOf, PATIENCE, sessionBecomes } from "../testing/fleet-sessions.ts";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

/** A runner reads the catalogue every two seconds. */
const PATIENCE_RUNNER = { timeout: 30_000, interval: 200 };

let project: Project;
let fleet: Fleet;
let server: ScriptedModelServer;
beforeEach(async () => {
  project = new Project();
  fleet = await openFleet();
  // The model answers with the number in its system prompt, after it has written a file.
  server = await startScriptedModelServer({
    script: ({ system, messages }) =>
      messages.some(({ role }) => role === "assistant")
        ? { text: `version ${/number (\w+)/.exec(system)?.[1]}` }
        : { toolCalls: [{ name: "write_file", input: { path: "new.txt", content: "x" } }] },
  });
  mkdirSync(project.path("work"));
});
afterEach(async () => {
  await project.dispose();
  await fleet.close();
  await server.close();
});

function write(name: string, number: string, fields = ""): string {
  const path = project.path(`${name}.md`);
  writeFileSync(path, `---\nname: ${name}\ndescription: Helps.\n${fields}---\nYou are number ${number}.\n`);
  return path;
}

const env = () => ({ HOLDFAST_TOKEN: fleet.adminToken, HOLDFAST_URL: fleet.url, HOME: project.path("home") });
const command = async (...args: string[]) => project.start(args, { env: env(), stdin: "" }).finished;

async function startRunner(policy: object, token = "", name = "box"): Promise<HoldfastProcess> {
  writeFileSync(project.path(`${name}.json`), JSON.stringify(policy));
  const started = project.start(
    ["runner", "-c", fleet.url, "-p", "work", "--policy", `${name}.json`, "--name", name],
    { env: { ...env(), HOLDFAST_TOKEN: token, HOLDFAST_SCRIPTED_MODEL_URL: server.url }, stdin: "" },
  );
  await started.says("waiting for runs");
  return started;
}

async function approve(sessionId: string): Promise<void> {
  await vi.waitFor(async () => {
    const response = await fetch(`${fleet.url}/v1/sessions/${sessionId}/answer`, {
      method: "POST",
      headers: { authorization: `Bearer ${fleet.adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({ answer: { approved: true } }),
    });
    expect(response.ok, `the answer was refused with ${response.status}`).toBe(true);
  }, PATIENCE);
}

test(
  "a session keeps the version that it started with, over a killed runner and a new version in between",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const file = write("helper", "one", "tools: Write\n");
    const { code, stderr } = await command("agents", "push", file, "--tag", "stable");
    expect(code, stderr).toBe(0);
    const policy = { agentFiles: { allow: ["*"], tools: ["write_file"] } };
    const runner = await startRunner(policy, await fleet.token("registration", "box"));
    const start = () => startSession(fleet, { agent: "helper", input: "Write it." });
    const first = await start();
    const asking = { status: "input_required" } as const;
    await sessionBecomes(fleet, first, asking);
    runner.kill("SIGKILL");
    await runner.finished;
    write("helper", "two", "tools: Write\n");
    write("greedy", "three", "holdfast:\n  secrets: [PASSWORD]\n");
    const again = await command("agents", "push", file, project.path("greedy.md"));
    expect(again.code, again.stderr).toBe(0);
    const next = await startRunner(policy);
    expect(next.stderr).toContain("the agent file greedy");
    expect(next.stderr).toContain("a file from a coordinator cannot have secrets (PASSWORD) on this runner");
    const second = await start();
    await Promise.all([approve(first), approve(second)]);
    expect(await outputOf(fleet, first)).toBe("version one");
    expect(await outputOf(fleet, second)).toBe("version two");
    const { stdout } = await command("agents", "history", "helper");
    expect(stdout).toMatch(/^VERSION +PUSHED +BY\s+\S+ .+ root +current\n\S+ .+ root +stable\n$/);
  },
);

test(
  "the list of pushed agents says why no runner offers one, until a version that its runner takes is pushed",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const call = async (token: string, ...args: string[]): Promise<string> => {
      const called = await project.finish(args, { env: { ...env(), HOLDFAST_TOKEN: token } });
      expect(called.code, called.stderr).toBe(0);
      return called.stdout;
    };
    const asAdmin = (...args: string[]) => call(fleet.adminToken, ...args);
    const list = () => asAdmin("agents", "list", "--pushed");
    await asAdmin("agents", "push", write("helper", "one", "holdfast:\n  secrets: [PASSWORD]\n"));
    expect(await list()).toContain("the current version of helper is not offered: no runner is online\n");
    const agentFiles = { allow: ["*"], tools: ["read_file"] };
    await startRunner({ agentFiles }, await fleet.token("registration", "box"));
    const reason =
      "the current version of helper is not offered: runner box refuses it: a file from a coordinator cannot have secrets (PASSWORD) on this runner\n";
    expect(await list()).toContain(reason);
    expect(await asAdmin("agents", "history", "helper")).toContain(reason);
    const [item] = JSON.parse(await asAdmin("agents", "list", "--pushed", "--json"));
    expect(item.notOffered).toEqual([expect.stringMatching(/^runner box refuses it: .*PASSWORD/)]);
    // A user may list the catalogue, and may not see runners.
    const user = await fleet.token("user", "ada");
    expect(await call(user, "agents", "list", "--pushed")).toMatch(/^NAME .+\nhelper +active .+\n$/);
    await asAdmin("agents", "push", write("helper", "two"));
    await vi.waitFor(async () => expect(await list()).not.toContain("not offered"), PATIENCE_RUNNER);
    await asAdmin("agents", "deactivate", "helper");
    expect(await list()).toContain("is not offered: it is inactive, and `holdfast agents activate helper`");
    await asAdmin("agents", "activate", "helper");
    await vi.waitFor(async () => expect(await list()).not.toContain("not offered"), PATIENCE_RUNNER);
  },
);

/** A skill and a script of the project that both say their number. */
function writeContents(number: string): void {
  const manifest = { name: "count", description: "Counts.", script_file: "count.sh" };
  for (const [file, text] of Object.entries({
    ".agents/skills/house-style/SKILL.md": `---\nname: house-style\ndescription: The style.\n---\nStyle ${number}.\n`,
    ".holdfast/scripts/count/script.json": JSON.stringify(manifest),
    ".holdfast/scripts/count/count.sh": `echo "count ${number}"\n`,
  })) {
    mkdirSync(dirname(project.path(file)), { recursive: true });
    writeFileSync(project.path(file), text);
  }
}

test(
  "skills and scripts of the coordinator reach its agents as the policy says, and a session keeps the versions that it began with",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    // The model reads the skill, calls the script, and answers with both results.
    await server.close();
    server = await startScriptedModelServer({
      script: ({ messages }) => {
        const results = JSON.stringify(messages.filter(({ role }) => role === "tool"));
        const [style, counted] = [/Style (\w+)/.exec(results)?.[1], /count (\w+)/.exec(results)?.[1]];
        if (style === undefined)
          return { toolCalls: [{ name: "read_skill", input: { name: "house-style" } }] };
        if (counted === undefined) return { toolCalls: [{ name: "script__count", input: {} }] };
        return { text: `style ${style}, count ${counted}` };
      },
    });
    const done = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await command(...args);
      expect(code, stderr).toBe(0);
      return stdout;
    };
    writeContents("one");
    await done("agents", "trust");
    const fields = "tools: read_file\nskills: [house-style]\nholdfast: { scripts: [count] }\n";
    await done("agents", "push", write("helper", "one", fields));
    await done("skill", "push", "house-style", "--tag", "stable");
    await done("script", "push", "count", "--catalogue");
    const [count] = JSON.parse(await done("script", "list", "--catalogue", "--json"));

    const agentFiles = { allow: ["*"], tools: ["read_file", "read_skill", "script__count"] };
    const refused = await startRunner({ agentFiles }, await fleet.token("registration", "box"));
    expect(refused.stderr).toMatch(
      /agent file helper \(\w+\) is not offered: .*"count", which the policy of this machine does not take/,
    );
    refused.kill("SIGTERM");
    await refused.finished;
    const approved = { agentFiles, allowScripts: "approved_hash", approvedScripts: [count.current] };
    const runner = await startRunner(approved);
    const start = () => startSession(fleet, { agent: "helper", input: "Do it." });
    const first = await start();
    await sessionBecomes(fleet, first, { status: "input_required" });
    runner.kill("SIGKILL");
    await runner.finished;

    writeContents("two");
    await done("skill", "push", "house-style");
    await done("script", "push", "count", "--url", fleet.url);
    // As on another machine, which has nothing of the first session.
    for (const kind of ["skills", "scripts", "pushed-skills", "pushed-scripts"])
      rmSync(project.path(`home/.local/share/holdfast/${kind}`), { recursive: true });
    await startRunner({ agentFiles, allowScripts: "all" });
    const second = await start();
    await Promise.all([approve(first), approve(second)]);
    expect(await outputOf(fleet, first)).toBe("style one, count one");
    expect(await outputOf(fleet, second)).toBe("style two, count two");
    await done("skill", "rollback", "house-style", "stable");
    await done("script", "deactivate", "count");
    expect(await done("skill", "show", "house-style", "--pushed")).toContain("Style one.");
    expect(await done("script", "list", "--catalogue")).toMatch(/count +inactive/);
    await done("script", "activate", "count");
    expect(await done("script", "list", "--catalogue")).toMatch(/count +active/);
    await done("skill", "deactivate", "house-style");
    expect(await done("skill", "list", "--pushed")).toMatch(/house-style +inactive/);
    await done("skill", "activate", "house-style");
    expect(await done("skill", "list", "--pushed")).toMatch(/house-style +active/);
  },
);

test(
  "a runner whose policy does not take a new version of a script no longer offers its agent, and no session fails",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const done = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await command(...args);
      expect(code, stderr).toBe(0);
      return stdout;
    };
    writeContents("one");
    await done("agents", "trust");
    await done("agents", "push", write("helper", "one", "tools: Write\nholdfast: { scripts: [count] }\n"));
    await done("script", "push", "count", "--catalogue");
    const [count] = JSON.parse(await done("script", "list", "--catalogue", "--json"));
    const agentFiles = { allow: ["*"], tools: ["write_file", "script__count"] };
    const approved = { agentFiles, allowScripts: "approved_hash", approvedScripts: [count.current] };
    await startRunner(approved, await fleet.token("registration", "strict"), "strict");
    const start = () => startSession(fleet, { agent: "helper", input: "Do it." });
    const first = await start();
    await sessionBecomes(fleet, first, { status: "input_required" });

    writeContents("two");
    await done("script", "push", "count", "--catalogue");
    const list = () => done("agents", "list", "--pushed");
    const refusal =
      'runner strict refuses it: agent "helper" asks for the script "count", which the policy of this machine does not take';
    await vi.waitFor(
      async () => expect(await list()).toContain(`the current version of helper is not offered: ${refusal}`),
      PATIENCE_RUNNER,
    );
    await startRunner({ agentFiles, allowScripts: "all" }, await fleet.token("registration", "open"), "open");
    expect(await list()).toContain(
      `the current version of helper is not offered by every runner: ${refusal}`,
    );
    const [item] = JSON.parse(await done("agents", "list", "--pushed", "--json"));
    expect(item).toMatchObject({ partlyRefused: [expect.stringContaining(refusal)] });
    const later = await Promise.all([start(), start(), start(), start()]);
    await Promise.all([first, ...later].map(approve));
    for (const session of [first, ...later]) expect(await outputOf(fleet, session)).toBe("version one");
  },
);
