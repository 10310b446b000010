// `holdfast runner --ipc` as a process, held by a host that behaves well, badly, or is gone.

import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";
import { IpcTestHost, type Message } from "../testing/ipc-host.ts";

let project: Project;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  writeFileSync(
    project.path("agents.ts"),
    `import { appendFileSync, existsSync } from "node:fs";
     import { setTimeout as sleep } from "node:timers/promises";
     import { defineAgent } from "holdfast";
     export const greeter = defineAgent({ name: "greeter", run: async (ctx, input) => {
       console.log("printed");
       process.stdout.write("written\\n");
       const text = await ctx.run("compose", () => "Hello, " + input.name);
       const { approved } = await ctx.requestInput({ prompt: "Say it?", details: text });
       return approved ? text : "kept";
     } });
     export const steps = defineAgent({ name: "steps", run: async (ctx, input) => {
       for (const n of [1, 2, 3]) await ctx.run("step " + n, async () => {
         appendFileSync("steps.txt", n + "\\n");
         if (n === 2) while (!existsSync("go")) await sleep(20);
       });
       return "walked";
     } });
     export const talker = defineAgent({ name: "talker", run: async (ctx, input) => {
       for (let n = 0; n < 60; n++) await ctx.run("say", () => String(n).padEnd(100_000, "."));
       return "said";
     } });
     export const two = defineAgent({ name: "two", run: (ctx) => ctx.all([ctx.requestInput("A?", { answer: "any" }), ctx.requestInput("B?", { answer: "any" })]) });
     export const waits = defineAgent({ name: "waits", run: (ctx) => ctx.waitForSignal("go") });`,
  );
});
afterEach(() => project.dispose());

function start(...args: string[]): IpcTestHost {
  return new IpcTestHost(project.start(["runner", "--ipc", "--agents", "agents.ts", ...args]));
}

const asks = { sessionId: "g", agent: "greeter", input: { name: "Ada" } };

/** The most memory that a process has had. */
function peakBytes(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) * 1024;
}

function seqsOf(host: IpcTestHost, sessionId: string): number[] {
  return host.messages
    .filter(({ type, sessionId: of }) => type === "event" && of === sessionId)
    .map(({ event }) => event.seq as number);
}

describe("a runner that a program holds", () => {
  test(
    "the runner keeps standard output for the protocol, whatever its agents print",
    ofCampaign,
    async () => {
      const host = start();
      await host.meet();
      await host.ask("start", asks);
      await host.ask("subscribe", { sessionId: "g" });
      await host.becomes("g", "input_required");
      await host.process.says("written"); // On standard error: `messages` would not parse it.
      expect(host.process.stderr).toContain("printed");
      expect(await host.ask("stop")).toEqual({});
      expect((await host.process.finished).code).toBe(0);
      expect(host.messages.at(-1)).toEqual({ type: "end", reason: "stopped" });
    },
  );

  test(
    "the next runner continues the sessions after kill -9, and the host continues their events",
    ofCampaign,
    async () => {
      const first = start();
      await first.meet();
      await first.ask("start", { sessionId: "s", agent: "steps" });
      await first.ask("subscribe", { sessionId: "s" });
      await first.find(({ event }) => event?.kind === "step 2");
      await first.process.until(
        () => readFileSync(project.path("steps.txt"), "utf8") === "1\n2\n",
        "two steps",
      );
      first.process.kill("SIGKILL");
      await first.process.finished;
      const known = seqsOf(first, "s").at(-1)!;

      const second = start();
      expect(await second.meet()).toMatchObject({ resumed: ["s"] });
      // The start whose answer may have been lost is repeated, and finds the session.
      expect(await second.ask("start", { sessionId: "s", agent: "steps" })).toEqual({ sessionId: "s" });
      await second.ask("subscribe", { sessionId: "s", afterSeq: known });
      writeFileSync(project.path("go"), "");
      const ended = await second.becomes("s", "completed");
      expect(ended).toMatchObject({ output: "walked" });
      expect(readFileSync(project.path("steps.txt"), "utf8")).toBe("1\n2\n2\n3\n");
      const seqs = [...seqsOf(first, "s"), ...seqsOf(second, "s")];
      expect(seqs).toEqual(seqs.map((_, n) => n));
      await second.find(({ type, reason }) => type === "unsubscribed" && reason === "ended");
    },
  );

  test(
    "the runner performs everything that it was sent before its host went away, and ends",
    ofCampaign,
    async () => {
      const requests = [
        { type: "hello", id: "1", protocol: 1 },
        { type: "start", id: "2", ...asks },
        { type: "signal", id: "3", sessionId: "w", name: "go", payload: 7 },
        { type: "start", id: "4", sessionId: "w", agent: "waits" },
        { type: "signal", id: "5", sessionId: "w", name: "go", payload: 8 },
      ];
      const stdin = `${requests.map((request) => JSON.stringify(request)).join("\n")}\n{"type":"start","id":"6"`;
      const runner = project.start(["runner", "--ipc", "--agents", "agents.ts"], { stdin });
      const { code, stdout } = await runner.finished;
      expect(code).toBe(0);
      const messages = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Message);
      const answers = Object.fromEntries(
        messages.filter(({ id }) => id !== undefined).map((one) => [one["id"], one]),
      );
      expect(answers).toMatchObject({
        2: { result: { sessionId: "g" } },
        3: { error: { code: "session_not_found" } },
        4: { result: { sessionId: "w" } },
        5: { result: { status: "stored" } },
      });
      expect(messages).toContainEqual(
        expect.objectContaining({
          type: "error",
          line: 6,
          error: expect.objectContaining({ code: "not_json" }),
        }),
      );
      expect(messages.at(-1)).toEqual({ type: "end", reason: "host_gone" });
      expect(await project.json("show", "g")).toMatchObject({ sessionId: "g" });

      const again = start();
      await again.meet();
      await again.ask("subscribe", { sessionId: "w" });
      expect(await again.becomes("w", "completed")).toMatchObject({ output: 8 });
    },
  );

  test(
    "the runner skips a line of a gigabyte without keeping it, and answers the next one",
    ofCampaign,
    async () => {
      const host = start();
      await host.meet();
      const before = peakBytes(host.process.child.pid!);
      const { stdin } = host.process.child;
      const piece = Buffer.alloc(4 * 1024 * 1024, "x");
      for (let n = 0; n < 256; n++)
        if (!stdin.write(piece)) await new Promise<void>((drained) => stdin.once("drain", () => drained()));
      host.write("\n");
      expect(await host.ask("status")).toMatchObject({ state: "ready" });
      expect(host.messages.filter(({ type }) => type === "error")).toMatchObject([
        { line: 2, error: { code: "limit_exceeded" } },
      ]);
      expect(peakBytes(host.process.child.pid!) - before).toBeLessThan(256 * 1024 * 1024);
    },
  );

  test(
    "the runner lets its sessions run while its host does not read, and then sends every event once",
    ofCampaign,
    async () => {
      const host = start();
      await host.meet();
      const { stdout } = host.process.child;
      await host.ask("start", { sessionId: "t", agent: "talker" });
      await host.ask("subscribe", { sessionId: "t" });
      stdout.pause();
      const other = project.start(["logs", "t", "--follow", "--json"]);
      expect(await other.finished).toMatchObject({ code: 0 });
      stdout.resume();
      await host.becomes("t", "completed");
      await host.find(({ type }) => type === "unsubscribed");
      const seqs = seqsOf(host, "t");
      expect(seqs.length).toBeGreaterThan(120);
      expect(seqs).toEqual(seqs.map((_, n) => n));
    },
  );

  test("the host receives an answer from another terminal", ofCampaign, async () => {
    const host = start();
    await host.meet();
    await host.ask("start", asks);
    await host.ask("subscribe", { sessionId: "g" });
    await host.becomes("g", "input_required");
    expect(await project.run("approve", "g")).toMatchObject({ code: 0 });
    expect(await host.becomes("g", "completed")).toMatchObject({ output: "Hello, Ada" });
    // A host has to name one of two questions.
    expect(await host.ask("start", { agent: "two", sessionId: "t" })).toMatchObject({ sessionId: "t" });
    await host.ask("subscribe", { sessionId: "t" });
    await host.becomes("t", "input_required");
    const unclear = await host.ask("answer", { sessionId: "t", answer: 1 });
    expect(unclear).toMatchObject({ error: { message: expect.stringContaining("names none of them") } });
    expect(await host.ask("answer", { sessionId: "t", answer: 2, question: 1 })).toEqual({
      status: "stored",
    });
    expect(await host.ask("answer", { sessionId: "t", answer: 1 })).toEqual({ status: "stored" });
    expect(await host.becomes("t", "completed")).toMatchObject({ output: [1, 2] });
  });

  test("the runner continues when the process that owned the database is killed", ofCampaign, async () => {
    writeFileSync(
      project.path("owner.ts"),
      `import { defineAgent } from "holdfast";
       export default defineAgent({ name: "owner", run: (ctx) => ctx.waitForSignal("never") });`,
    );
    const owner = project.start(["run", "owner.ts", "--session", "o"]);
    await owner.says("waits for signal");
    const host = start();
    await host.meet();
    await host.ask("start", asks);
    await host.ask("subscribe", { sessionId: "g" });
    await host.becomes("g", "input_required");
    owner.kill("SIGKILL");
    await owner.finished;
    expect(await host.ask("answer", { sessionId: "g", answer: { approved: true } })).toEqual({
      status: "stored",
    });
    expect(await host.becomes("g", "completed")).toMatchObject({ output: "Hello, Ada" });
    const seqs = seqsOf(host, "g");
    expect(seqs).toEqual(seqs.map((_, n) => n));
    expect(host.messages.filter(({ type }) => type === "ready")).toHaveLength(1);
  });

  test(
    "the runner reads no further while too many requests are open, and answers all of them",
    ofCampaign,
    async () => {
      const host = start();
      await host.meet();
      const count = 1_000;
      const lines = Array.from({ length: count }, (_, n) =>
        JSON.stringify({ type: "sessions", id: `n${n}` }),
      );
      host.write(`${lines.join("\n")}\n`);
      await host.ask("status");
      await host.process.until(
        () => host.messages.filter(({ id }) => String(id).startsWith("n")).length === count,
        "all answers",
      );
    },
  );
});

describe("a runner that cannot be held", () => {
  test(
    "the runner reports a file that cannot be loaded as its last line, with the exit code of the error",
    ofCampaign,
    async () => {
      const host = new IpcTestHost(project.start(["runner", "--ipc", "--agents", "missing.ts"]));
      const { code, stderr } = await host.process.finished;
      expect(code).toBe(2);
      expect(host.messages[0]).toMatchObject({ type: "hello", protocols: [1] });
      expect(host.messages.at(-1)).toMatchObject({
        type: "end",
        reason: "failed",
        error: { code: "file_not_found" },
      });
      expect(stderr).toContain("E_FILE_NOT_FOUND");
    },
  );

  test.each(
    sampled([
      [["--json"], "--ipc and --json exclude each other"],
      [["--secret-stdin", "KEY"], "--ipc and --secret-stdin exclude each other"],
      [["--max-runs", "3"], "--max-runs is for a runner of a coordinator"],
      [["--db", "x.db", "-c", "http://127.0.0.1:1"], "--db and a coordinator exclude each other"],
      [["--token-file", "-", "-c", "http://127.0.0.1:1"], "both read standard input"],
      [["-c", "http://127.0.0.1:1", "-c", "http://127.0.0.1:2"], "--ipc takes one coordinator"],
    ]),
  )("the command refuses %j", async (args, message) => {
    const { code, stdout, stderr } = await project.run("runner", "--ipc", "--agents", "agents.ts", ...args);
    expect(stderr).toContain(message);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });
});
