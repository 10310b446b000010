// The programs that call the command or open the page: agent files, attacks, the local stack.

import { lines, type FieldProgram } from "./field-program.ts";

const HELD = /^HOLD /m;
const BROKEN = [/^FAIL /m, /^node:internal/m];

const AGENTS: readonly FieldProgram[] = [
  {
    file: "agents/r02-settings-deny.sh",
    expects: "deny rules of the project's settings hold for agents that are read from there",
    says: [/^leak=0 infra=$/m, /Not permitted: read_file: \.env/],
  },
  {
    file: "agents/r06-submodules.sh",
    expects: "a worktree has its submodules",
    says: [/^worktree: rc 0$/m, /^VERDICT .*HOLD/m],
  },
  {
    file: "agents/r09-linked-skills.sh",
    expects: "linked skills are found, and misnamed and nested ones are named",
    says: [
      /^found: home-linked-folder home-linked-skill in-project; not mentioned:$/m,
      /^out-of-project +refused/m,
      /^upper +refused .*rename it to SKILL\.md/m,
    ],
  },
  {
    file: "agents/r10-monorepo.sh",
    expects: "files of a package of a monorepo are used",
    says: [
      /^webber +loaded /m,
      /^web-skill +loaded /m,
      /packages\/web\/\.claude\/settings\.json: permissions\.deny: mapped to deny read_file/,
      /^AGENTS\.md in the prompt: R-ROOT R-WEB/m,
    ],
  },
  {
    file: "agents/r13-compaction.sh",
    expects: "what a skill said survives a context boundary, or can be read again",
    says: [
      /summaries asked [1-9]/,
      ...lines(["REQUEST-GOAL", "RULE-AGENTSMD", "SKILLBODY-7158", "TODO-KEEP"], / in the last request: 1$/),
    ],
  },
  {
    file: "agents/r15-mcp-orphans.sh",
    expects: "nothing outlives SIGKILL and a hard cancel",
    says: [/^before: \d+ \d+/m, /^VERDICT .*HOLD/m],
  },
  {
    file: "agents/r21-variables.sh",
    expects: "placeholders of a server get their values or defaults, and one without a value is named",
    says: [
      // A value of the user's variables is a secret to the model.
      /^set: rc 0 echo set env=(value1|\[secret\]) args=arg1/m,
      /^dflt: rc 0 echo dflt env=(unset)? args=fallback/m,
      ...lines(["settings", "missing"], /: rc 3 .*placeholder \$\{\w+\} has no value; set the variable/),
    ],
  },
  {
    file: "agents/r22-tools-spelling.sh",
    expects: "a list of tools means the same in every spelling, and a misspelt restriction is no right",
    says: [
      ...lines(
        ["comma", "spaces", "list", "flow", "quoted", "trailing", "bracketed"],
        /: loaded .*tools: mapped read_file, search \|/,
      ),
      ...lines(["allowed", "allowedcamel", "denied", "deniedunknown"], /: refused/),
    ],
  },
  {
    file: "agents/r23-hook-args.sh",
    expects: "each field of a hook is honoured, named or refused",
    says: [
      /^args: rc \d+ blocked/m,
      /^if: rc 0 RAN/m, // The hook is for another command.
      /^async: rc 0 RAN in [0-7] s/m,
      /^once: rc \d+ blocked/m,
      /^shell: rc 3 blocked .*error/m,
      /^status: rc 0 RAN/m,
    ],
  },
  {
    file: "agents/r25-owner-and-mode.sh",
    expects: "a file that another user may change is refused, with advice that helps",
    says: [
      /^0777:\n(.*\n)+?rc 3\n(.*\n)*? +fix: run chmod go-w on it; where the file system has no modes/m,
      /^uid 1000:\n(.*\n)+?rc 3\n(.*\n)*? +fix: make a copy that this user owns/m,
    ],
  },
  {
    file: "agents/r26-claude-md.sh",
    expects: "files of other tools that are not used are named",
    says: [/^CLAUDE\.md: named by: err check$/m, /^\.gemini\/settings\.json: named by: .*check/m],
    neverSays: [/named by: nothing/],
  },
  {
    file: "agents/r31-user-settings.sh",
    expects: "hooks and deny rules of the user's own settings hold, or refuse the agent",
    says: [/^env read: no, guarded command ran: no, file named anywhere: yes$/m],
  },
  {
    file: "agents/r32-same-names.sh",
    expects: "one agent that is kept for several tools runs by its name, and a broken file harms no other",
    says: [/^by name: rc 0$/m, /^by path: rc 0$/m, /^beside a refused file of its name: rc 0$/m],
  },
  {
    file: "agents/r34-two-with-task.sh",
    expects: "agents that may start every agent run beside each other",
    says: lines(["one", "two", "helper", "without the third", "only one with Task"], /: rc 0 $/),
  },
  {
    file: "agents/r35-diamond.sh",
    expects: "two agents may both start a third",
    says: [/^lead: rc 0$/m],
  },
  {
    file: "agents/r37-builtin-agents.sh",
    expects: "check and run say the same of an agent that comes with another tool",
    says: [
      /^ +agents: ignored because Explore comes with the other tool/m,
      ...lines(["lead", "oc"], /: rc 0 $/),
    ],
  },
];

const PAGE: readonly FieldProgram[] = [
  {
    file: "page/moved.mjs",
    expects: "a key answers only what was read",
    says: [
      /the key a: harmless one \S+, rm one undefined$/m,
      /^after a click on Approve the focus is \w+, selected "(.*)"; then a new one arrives: selected "\1"$/m,
    ],
  },
  {
    file: "page/keys.mjs",
    expects: "keys do what the focused control says, and a held key answers once",
    says: [
      // An answer counts only when its item was shown for a moment.
      /^Enter on the focused button Deny of the inbox: \/ui\/inbox; state (completed|input_required)$/m,
      /^Enter on the focused link Costs, from the inbox: \/ui\/costs$/m,
      /^Enter on the focused fifth row (\S+): \1$/m,
      /^Enter on the focused link Fleet, from the sessions: \/ui\/fleet$/m,
      /moved: false$/m,
      /^the key a held for 2 s: [01] of 6 new approvals were given/m,
      /^the key a without having seen its end: undefined$/m,
    ],
  },
  {
    file: "page/double.mjs",
    expects: "a message whose answer is lost is stored once",
    says: [
      /entries \["one","You said: \*\*one\*\*","pay 100 once","You said: \*\*pay 100 once\*\*"\]$/m,
      /the session's card is selected: 1$/m,
    ],
  },
];

const SECURITY: readonly FieldProgram[] = [
  {
    file: "security/trace-rce.mjs",
    expects: "the configuration of a cloned repository runs nothing before trust",
    says: [/^HOLD trace into/m, /^HOLD trace otlp/m],
    neverSays: BROKEN,
  },
  {
    file: "security/planted-db.mjs",
    expects: "a session in the database of a cloned repository gets no rights",
    says: ["killed-before-shell", "hook-agent", "waits-then-resume"].map(
      (kind) => new RegExp(`^HOLD planted-db ${kind}: holdfast resume s1`, "m"),
    ),
    neverSays: BROKEN,
  },
  {
    file: "security/planted-more.mjs",
    expects: "no command continues a session of a stranger",
    says: ["answer", "approve", "chat", "resume s1", "resume --last", "runner --ipc"].map(
      (command) => new RegExp(`^HOLD planted database, .*: holdfast ${command}`, "m"),
    ),
    neverSays: BROKEN,
  },
  {
    file: "security/trust-drift.mjs",
    expects: "what was trusted is what runs",
    says: [HELD, /^HOLD after trust: another repository at the same path/m],
    neverSays: BROKEN,
  },
  {
    file: "security/tasks-escape.mjs",
    expects: "what a sandboxed agent writes never runs outside of its sandbox",
    says: ["virtual", "bubblewrap"].flatMap((sandbox) =>
      ["write_file", "shell"].map((by) => new RegExp(`^HOLD sandbox ${sandbox}: .*\\(by ${by}\\)`, "m")),
    ),
    neverSays: BROKEN,
  },
  {
    file: "security/forged-approval.mjs",
    expects: "the shell of an agent answers no question and sends no message",
    says: ["bubblewrap db --db", "bubblewrap db default", "virtual db --db"].flatMap((sandbox) => [
      new RegExp(`^HOLD ${sandbox}: approves its own question`, "m"),
      new RegExp(`^HOLD ${sandbox}: answers the question of another session`, "m"),
    ]),
    neverSays: BROKEN,
  },
];

const LOCAL: readonly FieldProgram[] = [
  {
    file: "local/s2-model-key.py",
    expects:
      "the key that was asked for reaches the model by every way, and no command of the agent reads it",
    says: [
      /^\$ holdfast run a x --session n -> 3$/m,
      ...lines(
        ["a x --session f", "b x --session fb", "b x --session s", "a x --session e", "a x --session es"].map(
          (of) => `$ holdfast run ${of}`,
        ),
        /.* -> 0$/,
      ),
      /^procs with canary \[\]$/m,
      /^disk \[\]$/m,
    ],
    neverSays: [/^SHELL SAW .*sk-ant-canary/m],
  },
  {
    file: "local/s2-suspects.py",
    expects: "one long task stops no other session",
    says: [/^0 continued after \{.*\} stuck \[\]$/m],
  },
  {
    file: "local/s4-two-policies.py",
    expects: "sessions get a new version of a script only where a runner takes it, and none fails",
    says: [/^ok 8 failed 0 \[\]$/m, /runner strict refuses it/],
  },
];

export const COMMAND_PROGRAMS: readonly FieldProgram[] = [...AGENTS, ...PAGE, ...SECURITY, ...LOCAL];
