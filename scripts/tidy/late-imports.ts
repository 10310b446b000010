// The imports of the command and of `place` that wait for the branch that needs them. `commands/index.ts`
// already loads each command alone, so any other import inside of a function has a reason here. Without one,
// it only hides a dependency.

import { posix } from "node:path";
import { child, type Source, type Tree, type Violation } from "./tree.ts";

const SOURCES = /^packages\/(holdfast|place)\/src\//;
const TABLE = "packages/holdfast/src/commands/index.ts";

/** Modules of the command, and packages, that some call must not pay for, by the reason. */
const REASONS: Readonly<Record<string, readonly string[]>> = {
  "a coordinator has the sessions, and no database of this machine is read": ["@holdfast/storage/sqlite"],
  "its driver is an optional package": ["@holdfast/storage/postgres", "@holdfast/place/coordinator-storage"],
  "the client of a coordinator costs as much time as all of a short command": [
    "@holdfast/storage/remote",
    "@holdfast/place/calls/catalogue-calls",
    "library/push-contents.ts",
    "run/drive/follow-session.ts",
    "screens/blocked-sessions.ts",
    "screens/cockpit.ts",
    "@holdfast/client",
    "@holdfast/place/coordinator-call",
  ],
  "agents of code need no model and no agent file": [
    "@holdfast/agents",
    "agents/this-machine.ts",
    "library/given-environment.ts",
  ],
  "the adapters of external agents are for those agents alone": [
    "agents/list-agents.ts",
    "agents/added/install-agent.ts",
    "sessions/hand-over.ts",
    "sessions/show-raw-lines.ts",
    "run/loading/load-external.ts",
    "agents/show-agent.ts",
    "@holdfast/machine/programs",
  ],
  "Git and worktrees are for sessions that work in a folder": [
    "agents/workspaces/project-worktrees.ts",
    "@holdfast/machine/session-folder",
    "agents/workspaces/session-work.ts",
    "agents/workspaces/shared-folder.ts",
    "agents/workspaces/uncommitted-work.ts",
  ],
  "secrets and sign-ins are looked up only for an agent that declares them": [
    "@holdfast/mcp/sign-in",
    "@holdfast/terminal/secrets/supplied-secrets",
  ],
  "one action of a command that mostly reads drives sessions or changes them": [
    "sessions/request-session.ts",
    "sessions/schedule-changes.ts",
    "sessions/send-signal.ts",
    "run/drive/drive-call.ts",
    "run/loading/trust-sessions.ts",
    "run/schedule-run.ts",
    "screens/inbox-screen.ts",
  ],
  "a server of scripted replies is for calls that ask no model": ["@holdfast/testkit"],
  "the schemas and servers of one action take longer than the other actions": [
    "@holdfast/machine/pushed-agents",
    "ipc/ipc-run.ts",
    "commands/library/serve-mcp.ts",
    "transfer/move-config.ts",
  ],
  "the page asks for it later, if at all": ["agents/check-agents.ts", "agents/mcp/show-mcp-servers.ts"],
  "programs that import the SDK may never run an agent file": ["@holdfast/runtime"],
  "`--version` and the help load no settings": ["@holdfast/place/program-path"],
};
const LATE: ReadonlySet<string> = new Set(Object.values(REASONS).flat());

/** Each import inside of a function of the command is in the list, and each entry of the list is such an import. */
export function lateImports({ sources, read }: Tree): readonly Violation[] {
  const found = sources.filter(({ file, isTest }) => SOURCES.test(file) && file !== TABLE && !isTest);
  const all = found.flatMap((source) => lateIn(source).map((late) => ({ file: source.file, ...late })));
  const used = new Set(all.map(({ module }) => module));
  return [
    ...all
      .filter(({ module }) => !LATE.has(module))
      .map(({ file, line, module }) => ({
        file,
        line,
        what: `${module} is imported inside of a function: import it at the top, or give the reason in late-imports.ts`,
      })),
    ...(read(TABLE) === undefined ? [] : [...LATE].filter((module) => !used.has(module))).map((module) => ({
      file: "scripts/tidy/late-imports.ts",
      what: `no function imports ${module}: remove it`,
    })),
  ];
}

/** The modules that a source imports by a literal inside of its code. */
function lateIn({
  file,
  walk,
  lineAt,
}: Source): readonly { readonly module: string; readonly line: number }[] {
  const late: { module: string; line: number }[] = [];
  walk((node) => {
    if (node.type !== "ImportExpression") return;
    const specifier = child(node, "source")?.["value"];
    if (typeof specifier !== "string") return;
    const path = posix.join(posix.dirname(file.replace(SOURCES, "")), specifier);
    late.push({ module: specifier.startsWith(".") ? path : specifier, line: lineAt(node.start) });
  });
  return late;
}
