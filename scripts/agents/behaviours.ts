// The behaviours that `npm run agents` observes with each real program (`BEHAVIOURS`).

import { setTimeout as delay } from "node:timers/promises";
import type { ExternalAgent, ExternalEnd } from "@holdfast/programs";
import type { RealSubject } from "./real-subject.ts";

/** `yes` (perhaps with a figure), `no`, or the thing that happens instead. */
export type Observed = string;

export interface Behaviour {
  readonly text: string;
  readonly observed: (subject: RealSubject) => Promise<Observed>;
}

const COMMAND = "command:[echo x >> a.txt]";

export const BEHAVIOURS: readonly Behaviour[] = [
  {
    text: "answers a prompt, and leaves no process",
    async observed(subject) {
      const end = await subject.turn("start", "hello");
      if (end.type !== "answered") return instead(end);
      return subject.left().length === 0 ? "yes" : `${subject.left().length} processes are left`;
    },
  },
  {
    text: "goes on with its conversation in another process",
    async observed(subject) {
      await subject.turn("start", "canary-first");
      const end = await subject.turn("resume", "recall");
      if (end.type !== "answered") return instead(end);
      return end.text.endsWith("recalled") ? "yes" : "it answers without its conversation";
    },
  },
  {
    text: "a call of a tool and its result are events",
    async observed(subject) {
      const end = await subject.turn("start", COMMAND);
      if (end.type !== "answered") return instead(end);
      const types = subject.events.map(({ type }) => type);
      const isComplete =
        types.includes("tool_call") && types.indexOf("tool_result") > types.indexOf("tool_call");
      return isComplete && subject.lines("a.txt") === 1
        ? "yes"
        : `${subject.lines("a.txt")} lines, ${types.join(", ")}`;
    },
  },
  {
    text: "asks before a command, and a refusal with its reason reaches the model",
    async observed(subject) {
      const end = await subject.turn("start", COMMAND, false);
      if (!subject.events.some(({ type }) => type === "permission_request"))
        return end.type === "answered" ? "it does not ask" : instead(end);
      if (subject.has("a.txt")) return "the refused command ran";
      if (subject.wasSent("canary-refused")) return "yes";
      return end.type === "answered" ? "without the reason" : `the refusal ends the turn: ${instead(end)}`;
    },
  },
  {
    text: "a message reaches the model while it works",
    async observed(subject) {
      const agent = await subject.begin("start", "command:[touch running; sleep 4; echo x]");
      await subject.untilRunning(agent);
      const delivery = await agent.steer("canary-steer");
      const end = await agent.ended;
      if (delivery === "rejected")
        return subject.protocol.capabilities().steer === "restart"
          ? "no, the turn is interrupted for it"
          : "no, it is the next prompt";
      if (end.type !== "answered") return instead(end);
      return subject.wasSent("canary-steer") ? "yes" : "it is taken, and the model does not get it";
    },
  },
  {
    text: "an interrupt ends the turn and the running command",
    async observed(subject) {
      const agent = await subject.work();
      const startedAt = performance.now();
      const end = await agent.abort();
      if (end.type !== "aborted") return instead(end);
      if (subject.left().length > 0) return `${subject.left().length} processes are left`;
      return `yes, ${Math.round((performance.now() - startedAt) / 100) / 10} s`;
    },
  },
  {
    text: "its session goes on after an interrupt",
    async observed(subject) {
      await (await subject.work()).abort();
      const end = await subject.turn("resume", "hello");
      return end.type === "answered" ? "yes" : instead(end);
    },
  },
  {
    text: "its session goes on after kill -9 in a command, and nothing runs twice",
    async observed(subject) {
      const agent = await subject.begin(
        "start",
        "canary-first command:[echo x >> a.txt; touch running; sleep 600]",
      );
      await subject.untilRunning(agent);
      await subject.protocol.endLost(subject.tag);
      await agent.ended;
      if (subject.left().length > 0) return `${subject.left().length} processes are left`;
      const end = await subject.turn("resume", "recall");
      if (end.type !== "answered") return instead(end);
      if (subject.lines("a.txt") !== 1) return `the command ran ${subject.lines("a.txt")} times`;
      return end.text.endsWith("recalled") ? "yes" : "it answers without its conversation";
    },
  },
  {
    text: "its session goes on after kill -9 at its first event",
    async observed(subject) {
      const agent = await subject.begin("start", "canary-first");
      while (subject.events.length === 0) await delay(5);
      return resumedAfterKill(subject, agent);
    },
  },
  {
    text: "its session goes on after kill -9 in its second turn, and the first is known",
    async observed(subject) {
      const first = await subject.turn("start", "canary-first");
      if (first.type !== "answered") return instead(first);
      const agent = await subject.begin("resume", "command:[echo x >> a.txt; touch running; sleep 600]");
      const ended = await subject.untilRunning(agent);
      if (ended !== undefined) return instead(ended);
      const observed = await resumedAfterKill(subject, agent);
      const ran = subject.lines("a.txt");
      return ran === 1 ? observed : `the command ran ${ran} times`;
    },
  },
  {
    text: "its session keeps, after kill -9 in the second command of its first turn",
    observed: (subject) => keptAfterKill(subject, "start"),
  },
  {
    text: "its session keeps, after kill -9 in the second command of its second turn",
    async observed(subject) {
      const first = await subject.turn("start", "canary-first");
      return first.type === "answered" ? keptAfterKill(subject, "resume") : instead(first);
    },
  },
  {
    text: "calls a tool of its session without a permission, and gets the result",
    async observed(subject) {
      const end = await subject.turn("start", "canary-progress");
      if (end.type !== "answered") return instead(end);
      if (subject.calls.length === 0) return "the model is not offered the tool";
      if (subject.events.some(({ type }) => type === "permission_request")) return "it asks for a permission";
      return subject.wasSent("canary-result") ? "yes" : "the result does not reach the model";
    },
  },
  {
    text: "asks the model that its session names",
    async observed(subject) {
      const { model } = subject.intent;
      if (model === null) return "its own settings choose";
      const end = await subject.turn("start", "hello");
      if (end.type !== "answered") return instead(end);
      return subject.askedModels().some((asked) => asked.includes(model.replace(/^.*\//, "")))
        ? "yes"
        : `it asks ${subject.askedModels().join(", ")}`;
    },
  },
  {
    text: "a session that it does not know is refused",
    async observed(subject) {
      subject.boundId = "01a21d4a-0000-7000-8000-000000000000";
      const end = await subject.turn("resume", "hello");
      return end.type === "unknown_session" ? "yes" : instead(end);
    },
  },
  {
    text: "reports its tokens, once",
    async observed(subject) {
      await subject.turn("start", "hello");
      const first = uses(subject);
      await subject.turn("resume", "hello");
      if (first === 0) return "no";
      return uses(subject) <= first
        ? "yes"
        : `${first} reports in the first turn, and ${uses(subject)} in the second`;
    },
  },
  {
    text: "an error of the model's API is an error of the turn",
    async observed(subject) {
      const end = await subject.turn("start", "canary-fail");
      return end.type === "error" ? "yes" : instead(end);
    },
  },
];

function uses(subject: RealSubject): number {
  return subject.events.filter(({ type }) => type === "usage").length;
}

function instead(end: ExternalEnd): Observed {
  return "message" in end ? `${end.type}: ${end.message.slice(0, 120)}` : end.type;
}

/** Kills the program in the second command of a turn, and looks at the conversation that its model gets after that. */
async function keptAfterKill(subject: RealSubject, mode: "start" | "resume"): Promise<Observed> {
  const agent = await subject.begin(
    mode,
    "canary-request command:[echo canary-$((40 + 2))] then:[touch running; sleep 600]",
  );
  const ended = await subject.untilRunning(agent);
  if (ended !== undefined) return instead(ended);
  await subject.protocol.endLost(subject.tag);
  await agent.ended;
  const end = await subject.turn("resume", "recall");
  if (end.type !== "answered") return instead(end);
  const messages = subject.asked("recall");
  const isSaid = (text: string): boolean => messages.some((one) => one.text.includes(text));
  const results = messages.flatMap(({ toolResults }) => toolResults);
  const calls = messages.flatMap(({ toolCalls }) => toolCalls);
  const parts = [
    ...(mode === "resume" && isSaid("canary-first") ? ["the first turn"] : []),
    ...(isSaid("canary-request") ? ["the request"] : []),
    ...(results.some(({ text }) => text.includes("canary-42")) ? ["the result of the first command"] : []),
    ...(calls.some(({ input }) => JSON.stringify(input).includes("touch running"))
      ? ["the call of the second"]
      : []),
  ];
  return parts.length === 0 ? "nothing" : parts.join(", ");
}

/** Kills the program in its turn, and resumes its session. */
async function resumedAfterKill(subject: RealSubject, agent: ExternalAgent): Promise<Observed> {
  await subject.protocol.endLost(subject.tag);
  await agent.ended;
  if (subject.left().length > 0) return `${subject.left().length} processes are left`;
  const end = await subject.turn("resume", "recall");
  if (end.type !== "answered") return instead(end);
  return end.text.endsWith("recalled") ? "yes" : "it answers without its conversation";
}
