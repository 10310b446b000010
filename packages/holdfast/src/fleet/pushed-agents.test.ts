// Agent files at a coordinator, with their skills and scripts: the command pushes them, and a runner whose
// policy allows them offers them. A session keeps its versions.

import { rmSync } from "node:fs";
import type { Conversation, Reply } from "@holdfast/testkit";
import { afterEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startSession } from "../testing/coordinator-client.ts";
import { outputOf, sessionBecomes } from "../testing/fleet-sessions.ts";
import { PushedStand } from "../testing/pushed-stand.ts";

/** A runner reads the catalogue every two seconds. */
const PATIENCE_RUNNER = { timeout: 30_000, interval: 200 };

let stand: PushedStand;
afterEach(() => stand.close());

/** The model answers with the number in its system prompt, after it has written a file. */
function numbered({ system, messages }: Conversation): Reply {
  return messages.some(({ role }) => role === "assistant")
    ? { text: `version ${/number (\w+)/.exec(system)?.[1]}` }
    : { toolCalls: [{ name: "write_file", input: { path: "new.txt", content: "x" } }] };
}

test(
  "a session keeps the version that it started with, over a killed runner and a new version in between",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    stand = await PushedStand.open(numbered);
    const { fleet } = stand;
    const file = stand.agent("helper", "one", "tools: Write\n");
    await stand.done(["agents", "push", file, "--tag", "stable"]);
    const policy = { agentFiles: { allow: ["*"], tools: ["write_file"] } };
    const runner = await stand.runner(policy, await fleet.token("registration", "box"));
    const start = () => startSession(fleet, { agent: "helper", input: "Write it." });
    const first = await start();
    const asking = { status: "input_required" } as const;
    await sessionBecomes(fleet, first, asking);
    runner.kill("SIGKILL");
    await runner.finished;
    stand.agent("helper", "two", "tools: Write\n");
    stand.agent("greedy", "three", "holdfast:\n  secrets: [PASSWORD]\n");
    await stand.done(["agents", "push", file, stand.project.path("greedy.md")]);
    const next = await stand.runner(policy);
    expect(next.stderr).toContain("the agent file greedy");
    expect(next.stderr).toContain("a file from a coordinator cannot have secrets (PASSWORD) on this runner");
    const second = await start();
    await Promise.all([stand.approve(first), stand.approve(second)]);
    expect(await outputOf(fleet, first)).toBe("version one");
    expect(await outputOf(fleet, second)).toBe("version two");
    expect(await stand.done(["agents", "history", "helper"])).toMatch(
      /^VERSION +PUSHED +BY\s+\S+ .+ root +current\n\S+ .+ root +stable\n$/,
    );
  },
);

test(
  "the list of pushed agents says why no runner offers one, until a version that its runner takes is pushed",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    stand = await PushedStand.open(numbered);
    const { fleet } = stand;
    const asAdmin = (...args: string[]) => stand.done(args);
    const list = () => asAdmin("agents", "list", "--catalogue");
    await asAdmin("agents", "push", stand.agent("helper", "one", "holdfast:\n  secrets: [PASSWORD]\n"));
    expect(await list()).toContain("the current version of helper is not offered: no runner is online\n");
    const agentFiles = { allow: ["*"], tools: ["read_file"] };
    await stand.runner({ agentFiles }, await fleet.token("registration", "box"));
    const reason =
      "the current version of helper is not offered: runner box refuses it: a file from a coordinator cannot have secrets (PASSWORD) on this runner\n";
    expect(await list()).toContain(reason);
    expect(await asAdmin("agents", "history", "helper")).toContain(reason);
    const [item] = JSON.parse(await asAdmin("agents", "list", "--catalogue", "--json"));
    expect(item.notOffered).toEqual([expect.stringMatching(/^runner box refuses it: .*PASSWORD/)]);
    // A user may list the catalogue, and may not see runners.
    const user = await fleet.token("user", "ada");
    expect(await stand.done(["agents", "list", "--catalogue"], user)).toMatch(
      /^NAME .+\nhelper +active .+\n$/,
    );
    await asAdmin("agents", "push", stand.agent("helper", "two"));
    await vi.waitFor(async () => expect(await list()).not.toContain("not offered"), PATIENCE_RUNNER);
    await asAdmin("agents", "deactivate", "helper");
    expect(await list()).toContain("is not offered: it is inactive, and `holdfast agents activate helper`");
    await asAdmin("agents", "activate", "helper");
    await vi.waitFor(async () => expect(await list()).not.toContain("not offered"), PATIENCE_RUNNER);
  },
);

test(
  "agents list --catalogue --tag shows the agents that have all of these tags, of a version or of the file",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    stand = await PushedStand.open(numbered);
    const { fleet } = stand;
    const tagged = stand.agent("helper", "one", "holdfast: { tags: [review, core] }\n");
    await stand.done(["agents", "push", tagged, stand.agent("other", "one"), "--tag", "stable"]);
    const list = (...tags: string[]) => stand.done(["agents", "list", "--catalogue", "--tag", ...tags]);
    expect(await list("stable")).toMatch(/^helper .*\nother /m);
    await stand.runner({ agentFiles: { allow: ["*"] } }, await fleet.token("registration", "box"));
    const found = await list("stable,review");
    expect(found).toMatch(/^helper /m);
    expect(found).not.toMatch(/^other /m);
    expect(await list("review,fast")).toBe(
      "no agent has the tags review and fast; tags here: core, review, stable\n",
    );
  },
);

/** A skill and a script of the project that both say their number. */
function writeContents(number: string): void {
  const manifest = { name: "count", description: "Counts.", script_file: "count.sh" };
  for (const [file, text] of Object.entries({
    ".agents/skills/house-style/SKILL.md": `---\nname: house-style\ndescription: The style.\n---\nStyle ${number}.\n`,
    ".holdfast/scripts/count/script.json": JSON.stringify(manifest),
    ".holdfast/scripts/count/count.sh": `echo "count ${number}"\n`,
  }))
    stand.write(file, text);
}

test(
  "skills and scripts of the coordinator reach its agents as the policy says, and a session keeps the versions that it began with",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    // The model reads the skill, calls the script, and answers with both results.
    stand = await PushedStand.open(({ messages }) => {
      const results = JSON.stringify(messages.filter(({ role }) => role === "tool"));
      const [style, counted] = [/Style (\w+)/.exec(results)?.[1], /count (\w+)/.exec(results)?.[1]];
      if (style === undefined) return { toolCalls: [{ name: "read_skill", input: { name: "house-style" } }] };
      if (counted === undefined) return { toolCalls: [{ name: "script__count", input: {} }] };
      return { text: `style ${style}, count ${counted}` };
    });
    const { fleet } = stand;
    const done = (...args: string[]) => stand.done(args);
    writeContents("one");
    await done("agents", "trust");
    const fields = "tools: read_file\nskills: [house-style]\nholdfast: { scripts: [count] }\n";
    await done("agents", "push", stand.agent("helper", "one", fields));
    await done("skill", "push", "house-style", "--tag", "stable");
    await done("script", "push", "count", "--catalogue");
    const [count] = JSON.parse(await done("script", "list", "--catalogue", "--json"));

    const agentFiles = { allow: ["*"], tools: ["read_file", "read_skill", "script__count"] };
    const refused = await stand.runner({ agentFiles }, await fleet.token("registration", "box"));
    expect(refused.stderr).toMatch(
      /agent file helper \(\w+\) is not offered: .*"count", which the policy of this machine does not take/,
    );
    refused.kill("SIGTERM");
    await refused.finished;
    const approved = { agentFiles, allowScripts: "approved_hash", approvedScripts: [count.current] };
    const runner = await stand.runner(approved);
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
      rmSync(stand.project.path(`home/.local/share/holdfast/${kind}`), { recursive: true });
    await stand.runner({ agentFiles, allowScripts: "all" });
    const second = await start();
    await Promise.all([stand.approve(first), stand.approve(second)]);
    expect(await outputOf(fleet, first)).toBe("style one, count one");
    expect(await outputOf(fleet, second)).toBe("style two, count two");
    await done("skill", "rollback", "house-style", "stable");
    await done("script", "deactivate", "count");
    expect(await done("skill", "show", "house-style", "--catalogue")).toContain("Style one.");
    expect(await done("script", "list", "--catalogue")).toMatch(/count +inactive/);
    await done("script", "activate", "count");
    expect(await done("script", "list", "--catalogue")).toMatch(/count +active/);
    await done("skill", "deactivate", "house-style");
    expect(await done("skill", "list", "--catalogue")).toMatch(/house-style +inactive/);
    await done("skill", "activate", "house-style");
    expect(await done("skill", "list", "--catalogue")).toMatch(/house-style +active/);
  },
);

test(
  "a runner whose policy does not take a new version of a script no longer offers its agent, and no session fails",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    stand = await PushedStand.open(numbered);
    const { fleet } = stand;
    const done = (...args: string[]) => stand.done(args);
    writeContents("one");
    await done("agents", "trust");
    await done(
      "agents",
      "push",
      stand.agent("helper", "one", "tools: Write\nholdfast: { scripts: [count] }\n"),
    );
    await done("script", "push", "count", "--catalogue");
    const [count] = JSON.parse(await done("script", "list", "--catalogue", "--json"));
    const agentFiles = { allow: ["*"], tools: ["write_file", "script__count"] };
    const approved = { agentFiles, allowScripts: "approved_hash", approvedScripts: [count.current] };
    await stand.runner(approved, await fleet.token("registration", "strict"), ["--name", "strict"]);
    const start = () => startSession(fleet, { agent: "helper", input: "Do it." });
    const first = await start();
    await sessionBecomes(fleet, first, { status: "input_required" });

    writeContents("two");
    await done("script", "push", "count", "--catalogue");
    const list = () => done("agents", "list", "--catalogue");
    const refusal =
      'runner strict refuses it: agent "helper" asks for the script "count", which the policy of this machine does not take';
    await vi.waitFor(
      async () => expect(await list()).toContain(`the current version of helper is not offered: ${refusal}`),
      PATIENCE_RUNNER,
    );
    await stand.runner({ agentFiles, allowScripts: "all" }, await fleet.token("registration", "open"), [
      "--name",
      "open",
    ]);
    expect(await list()).toContain(
      `the current version of helper is not offered by every runner: ${refusal}`,
    );
    const [item] = JSON.parse(await done("agents", "list", "--catalogue", "--json"));
    expect(item).toMatchObject({ partlyRefused: [expect.stringContaining(refusal)] });
    const later = await Promise.all([start(), start(), start(), start()]);
    await Promise.all([first, ...later].map((id) => stand.approve(id)));
    for (const session of [first, ...later]) expect(await outputOf(fleet, session)).toBe("version one");
  },
);
