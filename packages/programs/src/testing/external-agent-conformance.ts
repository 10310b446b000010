// The suite that every adapter passes: `externalAgentConformance`. Its clauses are those of the port
// `ExternalAgentProtocol`.

import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { TokenUsage } from "@holdfast/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type {
  ExternalAgent,
  ExternalAgentProtocol,
  ExternalEvent,
  ExternalIntent,
  ExternalTurn,
} from "../session/external-agent-protocol.ts";
import { turnAlone } from "../session/program/turn-alone.ts";
import { countRecorded, type CountedCalls } from "../session/limits/recorded-usage.ts";
import { openWayBack } from "../session/way-back/way-back.ts";
import type { SessionCall } from "../session/way-back/way-back-tools.ts";

/** An adapter under test, with the prompts by which its program does what each clause needs. */
export interface ExternalAgentSubject {
  /** Makes the adapter. Its program keeps its files below `home`. */
  readonly make: (home: string) => ExternalAgentProtocol;
  /** Prompts with which the program does these things. */
  readonly prompts: {
    readonly answer: string;
    /** Calls a tool, and answers. */
    readonly callTool: string;
    /** Calls a tool that starts a process outside of its process group, and never ends. */
    readonly hang: string;
    /** Asks for a permission, and answers. */
    readonly ask: string;
    /**
     * Calls the tool `report_progress` of its session with the text `half`, and answers. Without it this
     * clause is not tested.
     */
    readonly callSession?: string;
    /** Writes messages that no adapter knows, and answers. */
    readonly unknownMessages: string;
    /** Asks its model, which does not answer. */
    readonly noAnswer: string;
    /** Hangs as `hang` does, and nothing but SIGKILL ends it. Without it this clause is not tested. */
    readonly ignoreSignals?: string;
  };
  /** In one of the lines of `unknownMessages`. Without it nothing shows that they were written. */
  readonly unknownLine?: string;
  /** The numbers of clauses that do not fit the agent, each with the reason. They are not tested. */
  readonly unfit?: Readonly<Record<number, string>>;
  /** Faults of the program, for the clauses that need them. Without them these are not tested. */
  readonly faults?: {
    /** Makes the program die by SIGKILL after it has written so many messages; `undefined` ends the fault. */
    readonly dieAfter: (home: string, messages: number | undefined) => void;
    /** Makes the program open another session than the one that is resumed. */
    readonly openAnother: (home: string) => void;
    /**
     * Makes the program repeat the history of a session that it resumes. Absent for a protocol in which no
     * program does.
     */
    readonly repeatHistory?: {
      readonly begin: (home: string) => void;
      /** In one of the lines that repeat it. */
      readonly text: string;
    };
  };
}

/** For a failure of clause 10, because the program alone notices that it has no such tool. */
const TOOLS_UNKNOWN =
  "the program called no tool of its session: the adapter tells it of them by `toolFile`, `toolVariables` or a " +
  "message of its protocol, or its dialogue carries the call out by `wayBack.call` (see `LineAgentFacts`)";

type Skip = (condition: boolean, reason?: string) => void;

const SLOW_MS = 60_000;
/** `npm test` lets a program die after its first message and every fifth one, the external-agents campaign after each. */
const DEATHS_EVERY = process.env["HOLDFAST_CAMPAIGN"] === undefined ? 5 : 1;

/** Registers the suite for one adapter, in a test file of vitest. */
export function externalAgentConformance(subject: ExternalAgentSubject): void {
  const { make, prompts, unknownLine, faults, unfit = {} } = subject;
  const skipUnfit = (skip: Skip, clause: number): void => skip(unfit[clause] !== undefined, unfit[clause]);
  let base: string;
  let protocol: ExternalAgentProtocol;
  let intent: ExternalIntent;
  let tag: string;
  let boundId: string | null;
  /** The output of the programs of a test. Empty for an agent that is no program of lines. */
  let lines: string[];

  beforeEach(async () => {
    base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-external-")));
    const folder = join(base, "project");
    mkdirSync(folder);
    protocol = make(base);
    boundId = null;
    lines = [];
    tag = `conformance:${randomUUID()}`;
    intent = {
      ...(await protocol.find()),
      agentSessionId: randomUUID(),
      folder,
      model: null,
      permissionMode: "default",
    };
  });
  afterEach(async () => {
    await protocol.endLost(tag);
    rmSync(base, { recursive: true, force: true });
  });

  const turn = (prompt: string): ExternalTurn => ({
    ...turnAlone(intent.agentSessionId),
    intent,
    boundId,
    prompt,
    tag,
    onLine: (line) => lines.push(line),
  });
  const start = (prompt: string): Promise<ExternalAgent> => protocol.start(turn(prompt));
  const resume = (prompt: string): Promise<ExternalAgent> => protocol.resume(turn(prompt));
  const sendMessage = (prompt: string): Promise<ExternalAgent> => protocol.sendMessage(turn(prompt));
  const subscribe = (agent: ExternalAgent, subscriber: (event: ExternalEvent) => void): void =>
    agent.subscribe((event) => {
      if (event.type === "session_started") boundId = event.boundId;
      subscriber(event);
    });
  /** The events of a turn, which are added as they come. */
  const eventsOf = (agent: ExternalAgent): readonly ExternalEvent[] => {
    const events: ExternalEvent[] = [];
    subscribe(agent, (event) => events.push(event));
    return events;
  };
  /** The first event of this type. */
  const eventOf = <Type extends ExternalEvent["type"]>(
    agent: ExternalAgent,
    type: Type,
  ): Promise<Extract<ExternalEvent, { type: Type }>> =>
    new Promise((resolve, reject) => {
      subscribe(agent, (event) => {
        if (event.type === type) resolve(event as Extract<ExternalEvent, { type: Type }>);
      });
      void agent.ended.then((end) => reject(new Error(`no ${type}: ${JSON.stringify(end)}`)));
    });
  const left = (): readonly number[] => processesOf(tag);

  // external-agent-protocol-4. An agent that cannot resume opens no other session.
  const resumed = { type: make("/").capabilities().resume === "id" ? "answered" : "unknown_session" };

  const killed = {
    process: { type: "stopped", means: "SIGKILL", exit: { type: "signal", signal: "SIGKILL" } },
  };

  describe(`external agent: ${make("/").name}`, { timeout: SLOW_MS }, () => {
    test("external-agent-protocol-1: a session is resumed by the id that the caller or the agent chose", async () => {
      const agent = await start(prompts.answer);
      eventsOf(agent);
      expect(await agent.ended).toMatchObject({ type: "answered" });
      protocol = make(base); // As another process would.
      faults?.repeatHistory?.begin(base);
      const next = await sendMessage(prompts.answer);
      const events = eventsOf(next);
      const end = await next.ended;
      expect(end).toMatchObject(resumed);
      // A program may repeat the history of its session, which is none of this turn.
      const texts = events.flatMap((event) => (event.type === "text" ? [event.text] : []));
      expect(texts).toEqual(end.type === "answered" ? [end.text] : []);
      if (faults?.repeatHistory === undefined || end.type !== "answered") return;
      const { text } = faults.repeatHistory;
      const isRepeated = lines.some((line) => line.includes(text));
      const fix = "leave `repeatHistory` out where no program of the protocol repeats it";
      expect(isRepeated, `the program repeated no history: no line has "${text}"; ${fix}`).toBe(true);
    });

    test("external-agent-protocol-2: a late subscriber gets every event in order, before the turn has ended", async () => {
      const agent = await start(prompts.callTool);
      await delay(100);
      const events = eventsOf(agent);
      const end = await agent.ended;
      const types = events.map(({ type }) => type).filter((type) => type !== "text_delta");
      expect(types[0]).toBe("session_started");
      expect(types.indexOf("tool_call")).toBeGreaterThan(0);
      expect(types.indexOf("tool_result")).toBeGreaterThan(types.indexOf("tool_call"));
      expect(types.lastIndexOf("text")).toBeGreaterThan(types.indexOf("tool_result"));
      const text = events.findLast((event) => event.type === "text")?.text;
      expect(end).toEqual({ type: "answered", text });
    });

    test("external-agent-protocol-3: no process of the agent is left after its turn", async () => {
      await (
        await start(prompts.callTool)
      ).ended;
      expect(left()).toEqual([]);
    });

    test("external-agent-protocol-4: a session that the agent does not know is no new session", async () => {
      for (const open of [resume, sendMessage]) {
        boundId = "another";
        const agent = await open(prompts.answer);
        const events = eventsOf(agent);
        expect(await agent.ended).toEqual({ type: "unknown_session" });
        expect(events.filter(({ type }) => type === "text")).toEqual([]);
      }
    });

    test("external-agent-protocol-4: a session that opens under another id is no session of ours", async ({
      skip,
    }) => {
      skip(faults === undefined, "this program has no faults to switch on");
      const agent = await start(prompts.answer);
      eventsOf(agent);
      await agent.ended;
      faults?.openAnother(base);
      expect(await (await resume(prompts.callTool)).ended).toEqual({ type: "unknown_session" });
    });

    test("external-agent-protocol-5: a request for a permission takes one answer", async ({ skip }) => {
      skipUnfit(skip, 5);
      const agent = await start(prompts.ask);
      const request = await eventOf(agent, "permission_request");
      expect(await agent.answerPermission("another", { allowed: true })).toBe(false);
      const { requestId } = request.request;
      expect(await agent.answerPermission(requestId, { allowed: false, message: "canary-no" })).toBe(true);
      expect(await agent.answerPermission(requestId, { allowed: true })).toBe(false);
      expect(await agent.ended).toMatchObject({ type: "answered" });
      expect(await agent.answerPermission(requestId, { allowed: true })).toBe(false);
    });

    test("external-agent-protocol-6: messages that the adapter does not know do no harm", async () => {
      expect(await (await start(prompts.unknownMessages)).ended).toMatchObject({ type: "answered" });
      const isWritten = unknownLine === undefined || lines.some((line) => line.includes(unknownLine));
      expect(isWritten, `the program wrote no line with "${unknownLine}"`).toBe(true);
    });

    test("external-agent-protocol-7: endLost ends every process under the tag", async ({ skip }) => {
      skipUnfit(skip, 7);
      const agent = await start(prompts.hang);
      await eventOf(agent, "tool_call");
      while (left().length < 2) await delay(20);
      await make(base).endLost(tag);
      expect(left()).toEqual([]);
      expect(await agent.ended).toMatchObject({ type: "died", hasStarted: true });
    });

    test("external-agent-protocol-8: an aborted turn leaves no process, and its session is resumed", async ({
      skip,
    }) => {
      skipUnfit(skip, 8);
      const agent = await start(prompts.hang);
      await eventOf(agent, "tool_call");
      expect(await agent.abort()).toMatchObject({ type: "aborted" });
      expect(left()).toEqual([]);
      expect(await (await resume(prompts.answer)).ended).toMatchObject(resumed);
    });

    test("external-agent-protocol-8: an aborted program that ignores every request and signal is killed", async ({
      skip,
    }) => {
      skip(prompts.ignoreSignals === undefined, "this program does not ignore SIGTERM on request");
      const agent = await start(prompts.ignoreSignals!);
      await eventOf(agent, "tool_call");
      while (left().length < 2) await delay(20);
      expect(await agent.abort()).toMatchObject({ type: "aborted", ...killed });
      expect(left()).toEqual([]);
    });

    test("external-agent-protocol-10: the tools of the session reach the agent, and their token stays unseen", async ({
      skip,
    }) => {
      skip(prompts.callSession === undefined, "this program calls no tool of its session on request");
      const calls: SessionCall[] = [];
      const wayBack = await openWayBack((call) => {
        calls.push(call);
        return Promise.resolve({ text: `canary-result ${wayBack.token}`, isError: false });
      });
      try {
        const agent = await protocol.start({ ...turn(prompts.callSession!), wayBack });
        const events = eventsOf(agent);
        expect(await agent.ended, TOOLS_UNKNOWN).toMatchObject({ type: "answered" });
        expect(calls, TOOLS_UNKNOWN).toEqual([{ tool: "report_progress", input: { text: "half" } }]);
        const result = events.find((event) => event.type === "tool_result");
        expect(result?.text).toContain("canary-result");
        expect(JSON.stringify(events)).not.toContain(wayBack.token);
        expect(left()).toEqual([]);
      } finally {
        wayBack.close();
      }
    });

    test("external-agent-protocol-11: a message for after the answer is begun in the same process, or rejected", async () => {
      const agent = await start(prompts.answer);
      const isQueued = protocol.capabilities().followUp === "queue";
      expect(await agent.followUp(prompts.callTool)).toBe(isQueued ? "queued" : "rejected");
      const events = eventsOf(agent);
      const end = await agent.ended;
      const types = events.map(({ type }) => type);
      const at = types.indexOf("follow_up");
      expect(at > types.indexOf("text") && types.indexOf("tool_call") > at).toBe(isQueued);
      expect(events.filter(({ type }) => type === "follow_up")).toEqual(
        isQueued ? [{ type: "follow_up", text: prompts.callTool }] : [],
      );
      expect(end).toEqual({
        type: "answered",
        text: events.findLast((event) => event.type === "text")?.text,
      });
      expect(await agent.followUp(prompts.answer)).toBe("rejected");
      expect(left()).toEqual([]);
    });

    /** The calls in the program's own record that no event has told of. */
    const unreported = (events: readonly ExternalEvent[], from: number | null): Promise<CountedCalls> =>
      countRecorded(protocol, { intent, boundId, from, reported: recordIdsOf(events) });

    test("external-agent-protocol-12: an agent that has no record says so", () => {
      expect(protocol.recordedCalls !== undefined).toBe(unfit[12] === undefined);
    });

    test("external-agent-protocol-12: the program's record has the calls that were reported, and no others", async ({
      skip,
    }) => {
      skipUnfit(skip, 12);
      let from: number | null = 0;
      for (const open of [start, sendMessage]) {
        const agent = await open(prompts.callTool);
        const events = eventsOf(agent);
        expect(await agent.ended).toMatchObject({ type: "answered" });
        const ids = recordIdsOf(events);
        expect(new Set(ids).size).toBe(ids.length);
        const recorded = await unreported([], from);
        expect(recorded).toMatchObject({ isComplete: true });
        expect(tokensOf(recorded.usage)).toEqual(
          tokensOf(events.flatMap((event) => (isOfRecord(event) ? event.usage : []))),
        );
        expect(await unreported(events, from)).toEqual({ ...recorded, usage: [] });
        from = recorded.bytes;
      }
    });

    test("external-agent-protocol-12: the call that asked is in the record when the program is ended before an answer", async ({
      skip,
    }) => {
      skipUnfit(skip, 12);
      skipUnfit(skip, 5);
      const agent = await start(prompts.ask);
      const events = eventsOf(agent);
      while (!events.some(({ type }) => type === "permission_request")) await delay(20);
      await protocol.endLost(tag);
      await agent.ended;
      const recorded = await unreported([], 0);
      expect(recorded).toMatchObject({ isComplete: true });
      expect(recorded.usage).toHaveLength(1);
      const { usage } = await unreported(events, 0);
      expect(usage.length + recordIdsOf(events).length).toBe(1);
    });

    test("external-agent-protocol-12: a request without its answer, and a record that is not there, are no zero", async ({
      skip,
    }) => {
      skipUnfit(skip, 12);
      expect(await unreported([], 0)).toEqual({ usage: [], isComplete: false, bytes: 0 });
      const agent = await start(prompts.noAnswer);
      const events = eventsOf(agent);
      while ((await unreported(events, 0)).bytes === 0) await delay(20);
      await protocol.endLost(tag);
      await agent.ended;
      expect(await unreported(events, 0)).toMatchObject({ usage: [], isComplete: false });
    });

    test("external-agent-protocol-9: a program that dies after any message ends its turn, and leaves no process", async ({
      skip,
    }) => {
      skip(faults === undefined, "this program has no faults to switch on");
      for (let [deaths, messages] = [0, 1]; ; deaths++, messages += DEATHS_EVERY) {
        boundId = null;
        intent = { ...intent, agentSessionId: randomUUID() };
        faults?.dieAfter(base, messages);
        const agent = await start(prompts.callTool);
        const hasStarted = eventsOf(agent);
        const end = await agent.ended;
        expect(left()).toEqual([]);
        faults?.dieAfter(base, undefined);
        if (end.type === "answered") {
          expect(deaths, "the program did not die after its first message (`dieAfter`)").toBeGreaterThan(0);
          return;
        }
        expect(end).toMatchObject({ type: "died", hasStarted: hasStarted.length > 0 });
        const next = await (await resume(prompts.answer)).ended;
        expect(["answered", "unknown_session"]).toContain(next.type);
      }
    });
  });
}

function isOfRecord(event: ExternalEvent): event is Extract<ExternalEvent, { type: "usage" }> {
  return event.type === "usage" && (event.recordIds ?? []).length > 0;
}

function recordIdsOf(events: readonly ExternalEvent[]): readonly string[] {
  return events.flatMap((event) => (event.type === "usage" ? (event.recordIds ?? []) : []));
}

function tokensOf(usage: readonly TokenUsage[]): readonly unknown[] {
  return usage.map(({ model, inputTokens, outputTokens, cacheReadTokens }) => ({
    model,
    inputTokens,
    outputTokens,
    cacheReadTokens,
  }));
}

/** The processes with this tag in their environment. A zombie has none. */
function processesOf(tag: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").includes(tag);
      } catch {
        return false;
      }
    })
    .map(Number);
}
