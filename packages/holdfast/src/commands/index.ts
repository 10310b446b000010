// All commands by name, and their groups in the help. Each is loaded when it is called.

import type { Command } from "@holdfast/terminal/frame/command";

/** The commands of the help by subject, each with its line there. The help of all commands loads none of them. */
export const GROUPS: readonly (readonly [subject: string, summaries: Readonly<Record<string, string>>])[] = [
  [
    "Run agents",
    {
      run: "Run an agent until its session ends",
      chat: "Talk with the agent of an agent file, or with an external agent",
      resume: "Continue a session that no process is running",
      schedule: "Start sessions, or send signals, at recurring times",
    },
  ],
  [
    "See sessions",
    {
      ui: "Serve a page for the browser: sessions, and everything that waits for you",
      top: "Show the live sessions: what each waits for and why, and what it costs",
      inbox: "List everything that waits for a person: questions, approvals, pauses, uncertain effects",
      list: "List the sessions of this project, the newest first, children under their parents",
      show: "Show a session's status, and the command that answers what it waits for",
      result: "Show the output of a session that has ended",
      logs: "Show everything that a session did, from its journal",
      trace: "Show where a session's time and money went, from its journal",
      replay: "Step through a recorded turn again, without effects",
    },
  ],
  [
    "Steer sessions",
    {
      signal: "Send a signal to a session, whether or not it is running",
      approve: "Answer a session's open question with yes, or with no",
      answer: "Answer a session's open question with any JSON",
      pause: "Pause a session until somebody unpauses it",
      unpause: "Continue a paused session",
      budget: "Show or raise what a session and all sessions below it may spend",
      cancel: "End a session and all below it, whether or not they are running",
      delete: "Delete a session that has ended, permanently",
      fork: "Make a session that begins as another one did, up to a point, and then continues independently",
    },
  ],
  [
    "Work of sessions",
    {
      worktrees: "List and remove the git worktrees of sessions",
      diff: "Show what a session has changed in its worktree",
      merge: "Merge the branch of a session's worktree into the current branch",
    },
  ],
  [
    "Move sessions",
    {
      export: "Write one session to a file: its journal, its conversation and the signals it has not read",
      import:
        "Import a session that was written to a file, with the sessions below it if they are in the file",
      push: "Move a session from the database here to a coordinator",
      pull: "Move a session from a coordinator to the database here",
    },
  ],
  [
    "Run the whole system on this machine",
    {
      local: "Run the whole system on this machine: a coordinator and a runner",
      up: "Start the local stack, as `local start`",
      down: "Stop the local stack, as `local stop`",
    },
  ],
  [
    "Run a fleet",
    {
      coordinator: "Hold sessions for a fleet of runners",
      runner: "Run sessions of this machine for a coordinator",
      runners: "Show, drain and delete the runners of a coordinator",
      runs: "Show the runs of a coordinator: queued, claimed and ended",
      token: "Make, list and revoke the tokens of a coordinator",
    },
  ],
  [
    "Set up",
    {
      agents: "List, check and write agent files",
      models: "List models with their prices, and the providers that can be reached",
      rules: "List and revoke the permission rules that you gave by answers",
      mcp: "Serve sessions to MCP clients, and manage the MCP servers of agents",
      skill: "List, show, approve, tag and push skills",
      script: "Write, push, run and roll back scripts for agents",
      env: "Set, list, show and delete environments for agents",
      secret: "Store, list and delete the secrets of this user",
      config: "Show what is configured and where, and move it between machines",
      completion: "Write a script by which a shell completes command lines",
      doctor: "Check this installation and the database, and list what is unfinished",
    },
  ],
];

export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => (await import("./run.ts")).run,
  chat: async () => (await import("./people/chat.ts")).chat,
  resume: async () => (await import("./resume.ts")).resume,
  ui: async () => (await import("./ui.ts")).ui,
  top: async () => (await import("./people/top.ts")).top,
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
  worktrees: async () => (await import("./work/worktrees.ts")).worktrees,
  diff: async () => (await import("./work/diff.ts")).diff,
  merge: async () => (await import("./work/merge.ts")).merge,
  export: async () => (await import("./export.ts")).exportSession,
  import: async () => (await import("./import.ts")).importSession,
  push: async () => (await import("./move.ts")).push,
  pull: async () => (await import("./move.ts")).pull,
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
  mcp: async () => (await import("./library/mcp.ts")).mcp,
  models: async () => (await import("./library/models.ts")).models,
  env: async () => (await import("./library/env.ts")).env,
  skill: async () => (await import("./library/skill.ts")).skill,
  script: async () => (await import("./library/script.ts")).script,
  secret: async () => (await import("./secret.ts")).secret,
  config: async () => (await import("./config.ts")).config,
  completion: async () => (await import("./completion.ts")).completion(allCommands),
  doctor: async () => (await import("./doctor.ts")).doctor,
};

/** Every command with its summary, in the order of the help. It loads all of them. */
export async function allCommands(): Promise<
  readonly { readonly subject: string; readonly summary: string; readonly command: Command }[]
> {
  const listed = GROUPS.flatMap(([subject, summaries]) =>
    Object.entries(summaries).map(async ([name, summary]) => ({
      subject,
      summary,
      command: await COMMANDS[name]!(),
    })),
  );
  return Promise.all(listed);
}
