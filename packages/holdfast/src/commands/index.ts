// All commands by name, in the order of the help. Each is loaded when it is called.

import type { Command } from "../command.ts";

export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import("./run.ts")).run,
  resume: async () => (await import("./resume.ts")).resume,
  list: async () => (await import("./list.ts")).list,
  show: async () => (await import("./show.ts")).show,
  result: async () => (await import("./result.ts")).result,
  logs: async () => (await import("./logs.ts")).logs,
  trace: async () => (await import("./trace.ts")).trace,
  replay: async () => (await import("./replay.ts")).replay,
  signal: async () => (await import("./signal.ts")).signal,
  approve: async () => (await import("./approve.ts")).approve,
  answer: async () => (await import("./answer.ts")).answer,
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
  runner: async () => (await import("./runner.ts")).runner,
  coordinator: async () => (await import("./coordinator.ts")).coordinator,
  token: async () => (await import("./token.ts")).token,
  config: async () => (await import("./config.ts")).config,
  doctor: async () => (await import("./doctor.ts")).doctor,
};
