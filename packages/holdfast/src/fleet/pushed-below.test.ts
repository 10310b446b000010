// The agents that a pushed file starts, and its hooks. They are those of the coordinator, as far as the policy
// of the runner's machine gives them.

import { rmSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import type { Conversation, Reply } from "@holdfast/testkit";
import { startSession } from "../testing/coordinator-client.ts";
import { outputOf, sessionBecomes, sessionsOf } from "../testing/fleet-sessions.ts";
import { PushedStand } from "../testing/pushed-stand.ts";

/** A runner reads the catalogue every two seconds. */
const PATIENCE_RUNNER = { timeout: 60_000, interval: 200 };

let stand: PushedStand;
afterEach(() => stand.close());

/** The lead writes a file, which asks, then starts its helper, and answers with what it has read. */
function reply({ system, messages }: Conversation): Reply {
  const number = /number (\w+)/.exec(system)?.[1];
  if (!system.includes("You are lead")) return { text: `helper ${number}` };
  const results = messages.flatMap(({ toolResults }) => toolResults.map(({ text }) => text));
  if (results.length === 0)
    return { toolCalls: [{ name: "write_file", input: { path: "a.txt", content: "a" } }] };
  if (results.length === 1)
    return { toolCalls: [{ name: "delegate", input: { agent: "helper", input: "Help." } }] };
  const all = results.join(" ");
  return { text: `lead ${number}, ${/helper \w+/.exec(all)?.[0]}, ${/mark \w+/.exec(all)?.[0]}` };
}

const LEAD = `tools: Write, Task
holdfast:
  agents: [helper]
  budget: { turns: 20 }
  hooks: { after_tool: { tools: [write_file], script: mark } }
`;
const RIGHTS = {
  allow: ["lead", "helper"],
  tools: ["read_file", "write_file", "script__mark"],
  hooks: true,
  subAgents: ["helper"],
};

function writeMark(number: string): void {
  const manifest = { name: "mark", description: "Marks.", script_file: "mark.sh" };
  stand.write(".holdfast/scripts/mark/script.json", JSON.stringify(manifest));
  const answer = JSON.stringify({ action: "continue", context: `mark ${number}` });
  stand.write(".holdfast/scripts/mark/mark.sh", `cat > /dev/null; echo '${answer}'\n`);
}

test(
  "a child has the version that is current when it begins, and a session the hooks of its start, over a killed runner",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    stand = await PushedStand.open(reply);
    const { fleet } = stand;
    const pushMark = async (number: string): Promise<void> => {
      writeMark(number);
      await stand.done(["agents", "trust"]);
      await stand.done(["script", "push", "mark", "--catalogue"]);
    };
    await pushMark("one");
    await stand.done(["agents", "push", stand.agent("helper", "one", "tools: Read\n"), "--tag", "first"]);
    await stand.done(["agents", "push", stand.agent("lead", "one", LEAD)]);
    const policy = { agentFiles: RIGHTS, allowScripts: "all" };
    const runner = await stand.runner(policy, await fleet.token("registration", "box", "ada"));
    // The lease of the killed runner passes first.
    const outputAfterLease = (id: string) => vi.waitFor(() => outputOf(fleet, id), PATIENCE_RUNNER);
    const user = await fleet.token("user", "ada");
    const start = async (): Promise<string> => {
      const id = await startSession(fleet, { agent: "lead", input: "Do it." }, user);
      await sessionBecomes(fleet, id, { status: "input_required" });
      return id;
    };
    const first = await start();

    // The first turn is replayed with another helper and another script in the catalogue.
    runner.kill("SIGKILL");
    await runner.finished;
    const two = stand.agent("helper", "two", "tools: Read\n", "Helps otherwise.");
    await stand.done(["agents", "push", two]);
    await pushMark("two");
    await stand.runner(policy);
    await stand.approve(first);
    expect(await outputAfterLease(first)).toBe("lead one, helper two, mark one");

    const second = await start();
    await stand.done(["agents", "rollback", "helper", "first"]);
    await pushMark("three");
    await stand.approve(second);
    expect(await outputAfterLease(second)).toBe("lead one, helper one, mark two");
    // The same process has seen the new script meanwhile.
    const third = await vi.waitFor(async () => {
      const id = await start();
      await stand.approve(id);
      expect(await outputOf(fleet, id)).toBe("lead one, helper one, mark three");
      return id;
    }, PATIENCE_RUNNER);
    const children = await sessionsOf(fleet, "helper");
    const child = children.find(({ parent }) => parent?.sessionId === third);
    expect(child).toMatchObject({ placement: { owner: "ada" } });
    expect(child?.payers).toContain(third);
  },
);

test(
  "a pushed file is refused by the line of the policy that it lacks, and by an agent below it that is refused",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    stand = await PushedStand.open(reply);
    const { fleet } = stand;
    writeMark("one");
    await stand.done(["agents", "trust"]);
    await stand.done(["script", "push", "mark", "--catalogue"]);
    await stand.done(["agents", "push", stand.agent("lead", "one", LEAD)]);
    const list = () => stand.done(["agents", "list", "--catalogue"]);
    const refusedWith = async (agentFiles: object, reason: string): Promise<void> => {
      const policy = { agentFiles, allowScripts: "all" };
      const runner = await stand.runner(policy, await fleet.token("registration", "box"));
      expect(runner.stderr).toContain(reason);
      expect(await list()).toContain(`the current version of lead is not offered: runner box refuses it`);
      runner.kill("SIGTERM");
      await runner.finished;
    };
    const { hooks, ...noHooks } = RIGHTS;
    const { subAgents, ...noAgents } = RIGHTS;
    expect([hooks, subAgents]).toEqual([true, ["helper"]]);
    await refusedWith(
      noAgents,
      'the policy of this runner does not give the agent helper, as a line "subAgents": ["helper"]',
    );
    await refusedWith(
      noHooks,
      'the policy of this runner does not give hooks (after_tool), as a line "hooks": true',
    );
    await refusedWith(
      RIGHTS,
      "names the agent helper, which the coordinator has not and this runner does not offer",
    );
    await stand.done(["agents", "push", stand.agent("helper", "one", "tools: Bash\n")]);
    await refusedWith(
      { ...RIGHTS, allow: ["lead"] },
      'does not allow the file, as a line "allow": ["helper"]',
    );
    await refusedWith(
      RIGHTS,
      "it names the agent helper, which is refused: the policy of this runner does not give the tool shell",
    );
    const circle = "tools: Read, Task\nholdfast: { agents: [lead] }\n";
    await stand.done(["agents", "push", stand.agent("helper", "two", circle)]);
    const all = { ...RIGHTS, subAgents: ["*"] };
    await refusedWith(all, "agents start each other without end: helper → lead → helper");

    await stand.done(["agents", "push", stand.agent("helper", "three")]);
    await stand.runner({ agentFiles: RIGHTS, allowScripts: "all" }, await fleet.token("registration", "box"));
    await vi.waitFor(async () => expect(await list()).not.toContain("not offered"), PATIENCE_RUNNER);
    // A later version of the agent below takes the one above with it.
    await stand.done(["agents", "push", stand.agent("helper", "four", "tools: Bash\n")]);
    await vi.waitFor(
      async () => expect(await list()).toContain("which is refused: the policy of this runner does not give"),
      PATIENCE_RUNNER,
    );
  },
);

test(
  "a pushed file starts an agent that the runner offers of its own, and one that the file itself defines",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    stand = await PushedStand.open(({ system, messages }) => {
      if (!system.includes("You are lead"))
        return { text: system.includes("You check") ? "checked" : "own helper" };
      const results = messages.flatMap(({ toolResults }) => toolResults.map(({ text }) => text));
      const names = ["helper", "lead.checker"];
      const agent = names[results.length];
      return agent === undefined
        ? { text: results.join(", ") }
        : { toolCalls: [{ name: "delegate", input: { agent, input: "Help." } }] };
    });
    const { fleet } = stand;
    const fields = `tools: Read, Task
holdfast:
  agents: [helper]
  subAgents: { checker: { description: Checks., prompt: You check. } }
  hooks: { after_tool: { tools: [delegate], script: mark } }
`;
    writeMark("one");
    await stand.done(["agents", "trust"]);
    await stand.done(["script", "push", "mark", "--catalogue"]);
    rmSync(stand.project.path("home/.local/share/holdfast/scripts"), { recursive: true });
    await stand.done(["agents", "push", stand.agent("lead", "one", fields)]);
    const own = stand.agent("helper", "own", "tools: Read\n");
    const agentFiles = {
      allow: ["lead"],
      tools: ["read_file", "script__mark"],
      hooks: true,
      subAgents: ["helper", "lead.checker"],
    };
    await stand.runner({ agentFiles, allowScripts: "all" }, await fleet.token("registration", "box"), [
      "--name",
      "box",
      "--agents",
      own,
    ]);
    const id = await startSession(fleet, { agent: "lead", input: "Do it." });
    expect(await outputOf(fleet, id)).toMatch(/^own helper\s+mark one, checked\s+mark one$/);
  },
);
