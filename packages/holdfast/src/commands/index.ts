// All commands by name, and their groups in the help. Each is loaded when it is called.

import type { Command } from "../frame/command.ts";

/** The commands of the help, by subject. Each command is in one group. */
export const GROUPS: readonly (readonly [subject: string, names: readonly string[]])[] = [
  ["Run agents", ["run", "chat", "resume", "schedule"]],
  ["See sessions", ["ui", "inbox", "list", "show", "result", "logs", "trace", "replay"]],
  [
    "Steer sessions",
    ["signal", "approve", "answer", "pause", "unpause", "budget", "cancel", "delete", "fork"],
  ],
  ["Move sessions", ["export", "import", "push", "pull"]],
  ["Run the whole system on this machine", ["local", "up", "down"]],
  ["Run a fleet", ["coordinator", "runner", "runners", "runs", "token"]],
  ["Set up", ["agents", "rules", "skill", "secret", "config", "doctor"]],
];

export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import("./run.ts")).run,
  chat: async () => (await import("./people/chat.ts")).chat,
  resume: async () => (await import("./resume.ts")).resume,
  ui: async () => (await import("./ui.ts")).ui,
  inbox: async () => (await import("./people/inbox.ts")).inbox,
  list: async () => (await import("./list.ts")).list,
  show: async () => (await import("./show.ts")).show,
  result: async () => (await import("./result.ts")).result,
  logs: async () => (await import("./logs.ts")).logs,
  trace: async () => (await import("./trace.ts")).trace,
  replay: async () => (await import("./replay.ts")).replay,
  signal: async () => (await import("./signal.ts")).signal,
  approve: async () => (await import("./people/approve.ts")).approve,
  rules: async () => (await import("./people/rules.ts")).rules,
  answer: async () => (await import("./people/answer.ts")).answer,
  pause: async () => (await import("./pause.ts")).pause,
  unpause: async () => (await import("./unpause.ts")).unpause,
  budget: async () => (await import("./budget.ts")).budget,
  cancel: async () => (await import("./cancel.ts")).cancel,
  delete: async () => (await import("./delete.ts")).deleteSession,
  fork: async () => (await import("./fork.ts")).fork,
  export: async () => (await import("./export.ts")).exportSession,
  import: async () => (await import("./import.ts")).importSession,
  push: async () => (await import("./push.ts")).push,
  pull: async () => (await import("./pull.ts")).pull,
  schedule: async () => (await import("./schedule.ts")).schedule,
  local: async () => (await import("./local.ts")).local,
  up: async () => (await import("./local.ts")).up,
  down: async () => (await import("./local.ts")).down,
  runner: async () => (await import("./runner.ts")).runner,
  runners: async () => (await import("./runners.ts")).runners,
  runs: async () => (await import("./runs.ts")).runs,
  coordinator: async () => (await import("./coordinator.ts")).coordinator,
  token: async () => (await import("./token.ts")).token,
  agents: async () => (await import("./agents.ts")).agents,
  skill: async () => (await import("./library/skill.ts")).skill,
  secret: async () => (await import("./secret.ts")).secret,
  config: async () => (await import("./config.ts")).config,
  doctor: async () => (await import("./doctor.ts")).doctor,
};
