// A command whose owner ends between doing what it was asked and saying so.

import { renameSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const WAIT = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });`;
const QUICK = `import { defineAgent } from "holdfast";
export default defineAgent({ name: "quick", run: async (ctx) => {
  await ctx.run("one", () => 1);
  await ctx.run("two", () => 2);
  return "both";
} });`;

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.dispose());

/** From now on the owner's socket loses the connection, once, instead of an answer that says "stored". */
async function loseOneReply(): Promise<{ readonly lost: Promise<void>; close(): void }> {
  const socket = project.path(".holdfast/holdfast.db-socket");
  renameSync(socket, `${socket}-real`);
  const lost = Promise.withResolvers<void>();
  let isLost = false;
  const server = createServer((client) => {
    const owner = connect(`${socket}-real`);
    const end = (other: Socket) => () => void other.destroy();
    client.on("error", () => {}).on("close", end(owner));
    owner.on("error", () => {}).on("close", end(client));
    client.pipe(owner);
    owner.on("data", (chunk: Buffer) => {
      if (isLost || !chunk.includes('"stored"')) return void client.write(chunk);
      isLost = true;
      lost.resolve();
      client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const close = (): void => {
    server.close();
    renameSync(`${socket}-real`, socket);
  };
  return { lost: lost.promise, close };
}

async function sendThroughLoss(agent: string, ...command: string[]): Promise<unknown> {
  writeFileSync(
    project.path("agent.ts"),
    `import { defineAgent } from "holdfast";
export default defineAgent({ name: "agent", run: async (ctx: any) => { ${agent} } });`,
  );
  const running = project.start(["run", "agent.ts", "--session", "s", "--json"]);
  await running.says(/wait|Go on/);
  const proxy = await loseOneReply();
  const sent = await project.run(...command);
  await proxy.lost;
  if (agent.includes('"end"')) proxy.close();
  expect(sent).toMatchObject({ code: 0 });
  expect(sent.stderr).not.toContain("before");
  if (agent.includes('"end"')) expect(await project.run("signal", "s", "end")).toMatchObject({ code: 0 });
  expect(await running.finished).toMatchObject({ code: 0 });
  return (await project.json("result", "s"))["output"];
}

/** The owner of the database is killed when this many requests have come over its socket. */
async function killOwnerAtRequest(owner: HoldfastProcess, count: number): Promise<void> {
  const socket = project.path(".holdfast/holdfast.db-socket");
  renameSync(socket, `${socket}-real`);
  let left = count;
  const server = createServer((client) => {
    const behind = connect(`${socket}-real`);
    client.on("error", () => {}).on("close", () => void behind.destroy());
    behind.on("error", () => {}).on("close", () => void client.destroy());
    behind.pipe(client);
    client.on("data", (chunk: Buffer) => {
      left -= chunk.toString().split("\n").length - 1;
      if (left > 0) return void behind.write(chunk);
      owner.kill("SIGKILL");
      server.close();
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
}

test(
  "a session that runs over another process goes on here, whatever it was asking when that ended",
  ofCampaign,
  async () => {
    writeFileSync(project.path("wait.ts"), WAIT);
    writeFileSync(project.path("quick.ts"), QUICK);
    for (let count = 1; count <= 10; count++) {
      const owner = project.start(["run", "wait.ts", "--session", `owner-${count}`, "--json"]);
      await owner.says('"wait_signal"');
      await killOwnerAtRequest(owner, count);
      const { code, stdout, stderr } = await project.run("run", "quick.ts", "--session", `s-${count}`);
      expect({ count, code, stdout, stderr }).toMatchObject({ code: 0, stdout: "both\n" });
      owner.kill("SIGKILL");
      await owner.finished;
    }
  },
);

test("a signal is stored once, and the command says so", ofCampaign, async () => {
  const agent = 'await ctx.waitForSignal("end"); return ctx.drainSignals("go").map((s: any) => s.payload);';
  expect(await sendThroughLoss(agent, "signal", "s", "go", "7")).toEqual([7]);
});

test("a signal that was consumed meanwhile, and ended its session, was stored", ofCampaign, async () => {
  expect(await sendThroughLoss('return ctx.waitForSignal("go");', "signal", "s", "go", "7")).toBe(7);
});

test("an answer that was consumed meanwhile was given", ofCampaign, async () => {
  const agent = 'return ctx.requestInput("Go on?", { answer: "any" });';
  expect(await sendThroughLoss(agent, "answer", "s", "7")).toBe(7);
});
