// All commands by subject. Each is loaded when it is called, so the help of all of them loads none.

import type { Command } from "@holdfast/terminal/frame/command";

export interface ListedCommand {
  /** Its line in the overview, and the first of its own help. */
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** The commands by subject, in the order of the help. */
export const GROUPS = [
  [
    "Run agents",
    {
      run: {
        summary: "Run an agent until its session ends",
        load: async () => (await import("./run.ts")).run,
      },
      chat: {
        summary: "Talk with the agent of an agent file, or with an external agent",
        load: async () => (await import("./people/chat.ts")).chat,
      },
      resume: {
        summary: "Continue a session that no process is running",
        load: async () => (await import("./resume.ts")).resume,
      },
      attach: {
        summary: "Follow a session that another process runs, and answer its questions",
        load: async () => (await import("./people/attach.ts")).attach,
      },
      schedule: {
        summary: "Start sessions, or send signals, at recurring times",
        load: async () => (await import("./schedule.ts")).schedule,
      },
    },
  ],
  [
    "See sessions",
    {
      ui: {
        summary: "Serve a page for the browser: sessions, and everything that waits for you",
        load: async () => (await import("./ui.ts")).ui,
      },
      top: {
        summary: "Show the live sessions, what each does or needs and what it costs, and act on them by keys",
        load: async () => (await import("./people/top.ts")).top,
      },
      inbox: {
        summary: "List everything that waits for a person: questions, approvals, pauses, uncertain effects",
        load: async () => (await import("./people/inbox.ts")).inbox,
      },
      list: {
        summary: "List the sessions of this project, the newest first, children under their parents",
        load: async () => (await import("./list.ts")).list,
      },
      show: {
        summary: "Show a session's status, and the command that answers what it waits for",
        load: async () => (await import("./show.ts")).show,
      },
      result: {
        summary: "Show the output of a session that has ended",
        load: async () => (await import("./result.ts")).result,
      },
      logs: {
        summary: "Show everything that a session did, from its journal",
        load: async () => (await import("./logs.ts")).logs,
      },
      trace: {
        summary: "Show where a session's time and money went, from its journal",
        load: async () => (await import("./trace.ts")).trace,
      },
      replay: {
        summary: "Step through a recorded turn again, without effects",
        load: async () => (await import("./replay.ts")).replay,
      },
    },
  ],
  [
    "Steer sessions",
    {
      signal: {
        summary: "Send a signal to a session, whether or not it is running",
        load: async () => (await import("./signal.ts")).signal,
      },
      message: {
        summary: "Send a message to agents, whether they wait for it or work",
        load: async () => (await import("./people/message.ts")).message,
      },
      approve: {
        summary: "Answer a session's open question with yes, or with no",
        load: async () => (await import("./people/approve.ts")).approve,
      },
      answer: {
        summary: "Answer a session's open question with any JSON",
        load: async () => (await import("./people/answer.ts")).answer,
      },
      pause: {
        summary: "Pause a session until somebody unpauses it",
        load: async () => (await import("./pause.ts")).pause,
      },
      unpause: {
        summary: "Continue a paused session",
        load: async () => (await import("./unpause.ts")).unpause,
      },
      title: {
        summary: "Show or replace the title of a session",
        load: async () => (await import("./people/title.ts")).title,
      },
      budget: {
        summary: "Show or raise what a session and all sessions below it may spend",
        load: async () => (await import("./budget.ts")).budget,
      },
      cancel: {
        summary: "End a session and all below it, whether or not they are running",
        load: async () => (await import("./cancel.ts")).cancel,
      },
      delete: {
        summary: "Delete a session that has ended, permanently",
        load: async () => (await import("./delete.ts")).deleteSession,
      },
      fork: {
        summary:
          "Make a session that begins as another one did, up to a point, and then continues independently",
        load: async () => (await import("./fork.ts")).fork,
      },
    },
  ],
  [
    "Work of sessions",
    {
      worktrees: {
        summary: "List and remove the git worktrees of sessions",
        load: async () => (await import("./work/worktrees.ts")).worktrees,
      },
      diff: {
        summary: "Show what a session has changed in its worktree",
        load: async () => (await import("./work/diff.ts")).diff,
      },
      merge: {
        summary: "Merge the branch of a session's worktree into the current branch",
        load: async () => (await import("./work/merge.ts")).merge,
      },
    },
  ],
  [
    "Move sessions",
    {
      export: {
        summary: "Write one session to a file: its journal, its conversation and the signals it has not read",
        load: async () => (await import("./export.ts")).exportSession,
      },
      import: {
        summary:
          "Import a session that was written to a file, with the sessions below it if they are in the file",
        load: async () => (await import("./import.ts")).importSession,
      },
      push: {
        summary: "Move a session from the database here to a coordinator",
        load: async () => (await import("./move.ts")).push,
      },
      pull: {
        summary: "Move a session from a coordinator to the database here",
        load: async () => (await import("./move.ts")).pull,
      },
    },
  ],
  [
    "Run the whole system on this machine",
    {
      local: {
        summary: "Run the whole system on this machine: a coordinator and a runner",
        load: async () => (await import("./local.ts")).local,
      },
      up: {
        summary: "Start the local stack, as `local start`",
        load: async () => (await import("./local.ts")).up,
      },
      down: {
        summary: "Stop the local stack, as `local stop`",
        load: async () => (await import("./local.ts")).down,
      },
    },
  ],
  [
    "Run a fleet",
    {
      coordinator: {
        summary: "Hold sessions for a fleet of runners",
        load: async () => (await import("./coordinator.ts")).coordinator,
      },
      runner: {
        summary: "Run sessions of this machine for a coordinator",
        load: async () => (await import("./runner.ts")).runner,
      },
      runners: {
        summary: "Show, drain and delete the runners of a coordinator",
        load: async () => (await import("./runners.ts")).runners,
      },
      runs: {
        summary: "Show the runs of a coordinator: queued, claimed and ended",
        load: async () => (await import("./runs.ts")).runs,
      },
      token: {
        summary: "Make, list and revoke the tokens of a coordinator",
        load: async () => (await import("./token.ts")).token,
      },
    },
  ],
  [
    "Set up",
    {
      init: {
        summary: "Write agents to begin with into this folder",
        load: async () => (await import("./library/init.ts")).init,
      },
      agents: {
        summary: "List, check and write agent files",
        load: async () => (await import("./agents.ts")).agents,
      },
      models: {
        summary: "List models with their prices, and the providers that can be reached",
        load: async () => (await import("./library/models.ts")).models,
      },
      rules: {
        summary: "List and revoke the permission rules that you gave by answers",
        load: async () => (await import("./people/rules.ts")).rules,
      },
      mcp: {
        summary: "Serve sessions to MCP clients, and manage the MCP servers of agents",
        load: async () => (await import("./library/mcp.ts")).mcp,
      },
      skill: {
        summary: "List, show, approve, tag and push skills",
        load: async () => (await import("./library/skill.ts")).skill,
      },
      script: {
        summary: "Write, push, run and roll back scripts for agents",
        load: async () => (await import("./library/script.ts")).script,
      },
      env: {
        summary: "Set, list, show and delete environments for agents",
        load: async () => (await import("./library/env.ts")).env,
      },
      secret: {
        summary: "Store, list and delete the secrets of this user",
        load: async () => (await import("./secret.ts")).secret,
      },
      config: {
        summary: "Show what is configured and where, and move it between machines",
        load: async () => (await import("./config.ts")).config,
      },
      docs: {
        summary: "Show the documents of this installation, without a network",
        load: async () => (await import("./library/docs.ts")).docs,
      },
      completion: {
        summary: "Write a script by which a shell completes command lines",
        load: async () => (await import("./completion.ts")).completion(allCommands),
      },
      upgrade: {
        summary: "Check before an upgrade which sessions the new version would continue",
        load: async () => (await import("./library/upgrade.ts")).upgrade,
      },
      doctor: {
        summary: "Check this installation and the database, and list what is unfinished",
        load: async () => (await import("./doctor.ts")).doctor,
      },
    },
  ],
] as const satisfies readonly (readonly [subject: string, listed: Readonly<Record<string, ListedCommand>>])[];

export type CommandName = NamesIn<(typeof GROUPS)[number][1]>;
type NamesIn<Listed> = Listed extends unknown ? keyof Listed : never;

export const COMMANDS: Readonly<Record<string, ListedCommand>> = Object.fromEntries(
  GROUPS.flatMap(([, listed]) => Object.entries<ListedCommand>(listed)),
);

/** Every command with its summary, in the order of the help. It loads all of them. */
export async function allCommands(): Promise<
  readonly { readonly subject: string; readonly summary: string; readonly command: Command }[]
> {
  const all = GROUPS.flatMap(([subject, listed]) =>
    Object.values<ListedCommand>(listed).map(async ({ summary, load }) => ({
      subject,
      summary,
      command: await load(),
    })),
  );
  return Promise.all(all);
}
