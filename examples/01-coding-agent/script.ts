// The replies of the scripted model, for the repository in `fixture/` and no other.
//
// It decides from the conversation alone, so a retry and a resumed session get the same answers. Like a real
// model it does not know everything at once: its first plan leaves one test failing, and it has to look
// again.

import type { Conversation, ModelScript, Reply } from "@holdfast/testkit";

export const fixtureScript: ModelScript = (conversation) => {
  const results = resultsByTool(conversation);
  const listed = results("list_files");
  if (listed.length === 0) {
    return say(
      "I look around first.",
      ["list_files", { recursive: true }],
      ["read_file", { path: "package.json" }],
    );
  }
  if (!FILES.every((path) => listed.at(-1)?.includes(path))) {
    throw new Error(
      "this is a scripted model: its answers are written for one example repository, and this is another one. " +
        "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL to work with a real model",
    );
  }
  if (results("read_file").length === 1) {
    return say("Two places could be wrong. I read them and their tests.", ...FILES.map(read));
  }
  if (!results("propose_plan").some((text) => text.startsWith("The plan was approved")))
    return proposePlan(results);
  return work(results("edit_file").length, commandsOf(conversation));
};

const FILES = ["src/discount.js", "src/money.js", "src/receipt.js", "test/discount.js", "test/receipt.js"];

function proposePlan(results: Results): Reply {
  const [, reason] = /The person says: (.*?) Revise it/s.exec(results("propose_plan").at(-1) ?? "") ?? [];
  const before =
    reason === undefined ? "" : `You did not approve the last plan (${reason}), so I keep this one small. `;
  const plan = [
    `${before}The discount for ten pieces begins with the eleventh: src/discount.js compares with > where it should be >=.`,
    "1. Compare with >= in src/discount.js",
    "2. Run the tests",
    "3. If a test still fails, find its cause and mend it in the same way; leave the tests alone",
  ];
  return say("Ten pieces should be cheaper, and the code asks for more than ten.", [
    "propose_plan",
    { plan: plan.join("\n") },
  ]);
}

const TEST = "npm test --silent";

/** After the approval: the tests, one edit, the tests, the second edit, the tests, the commit, the end. */
function work(edits: number, commands: readonly Ran[]): Reply {
  const runs = commands.filter(({ command }) => command === TEST);
  if (runs.length === 0)
    return say("First the tests, before anything is changed.", shell("git status --short"), shell(TEST));
  if (runs.length <= edits) return say("Now the tests.", shell(TEST));
  if (edits === 0) {
    return say("The limit itself has to count.", [
      "edit_file",
      { path: "src/discount.js", oldText: "quantity > BULK_QUANTITY", newText: "quantity >= BULK_QUANTITY" },
    ]);
  }
  if (edits === 1) {
    return say(
      "The discount is right. One test still fails: 19.99 is read as 1998, because 19.99 * 100 is 1998.9999999999998 and is cut off.",
      [
        "edit_file",
        {
          path: "src/money.js",
          oldText: "Math.floor(Number(label) * 100)",
          newText: "Math.round(Number(label) * 100)",
        },
      ],
    );
  }
  return commit(commands.findLast(({ command }) => command.endsWith(SHOW_ID)));
}

const SHOW_ID = "git rev-parse HEAD";
const COMMIT = [
  "git add src",
  "git commit --quiet" +
    " --message='till: give the discount from ten pieces on, and read prices to the cent'" +
    " --message='The discount began with the eleventh piece. Prices were cut off after a multiplication that is not exact\n" +
    "(19.99 * 100 is 1998.9999999999998), so some were a cent too low.'",
  SHOW_ID,
].join(" && ");
/** Succeeds when everything is committed. */
const LOOK = `git diff --quiet HEAD && ${SHOW_ID}`;
const COMMIT_AGAIN = `find .git -name '*.lock' -delete && ${COMMIT}`;

/** The commit, once. A crash may have cut off its command, which nobody repeats without a look. */
function commit(last: Ran | undefined): Reply {
  if (last === undefined) return say("All tests pass.", ["shell", { command: COMMIT }]);
  const [id] = /^[0-9a-f]{40,64}$/m.exec(last.text) ?? [];
  if (id !== undefined) return submit("completed", SUMMARY, id);
  if (last.command === LOOK) return say("It is not committed yet.", ["shell", { command: COMMIT_AGAIN }]);
  if (last.text.includes("nobody knows"))
    return say("The commit was cut off. I look whether it is there.", shell(LOOK));
  return submit("stopped", `The changes could not be committed: ${last.text}`, null);
}

const SUMMARY =
  "Two mistakes are mended: the discount now begins with ten pieces, as the README says, and prices such as 19.99 are " +
  "read to the cent. All tests pass.";

function submit(status: string, summary: string, id: string | null): Reply {
  return say("", ["submit_output", { status, summary, commit: id }]);
}

/** The results of a tool so far, oldest first. */
type Results = (tool: string) => readonly string[];

function resultsByTool(conversation: Conversation): Results {
  const all = conversation.messages.flatMap((message) => message.toolResults);
  return (tool) => all.filter((result) => result.name === tool).map((result) => result.text);
}

/** A command with its result. */
interface Ran {
  readonly command: string;
  readonly text: string;
}

function commandsOf({ messages }: Conversation): readonly Ran[] {
  const calls = new Map(messages.flatMap(({ toolCalls }) => toolCalls).map((call) => [call.id, call.input]));
  return messages
    .flatMap(({ toolResults }) => toolResults)
    .filter(({ name }) => name === "shell")
    .map(({ toolCallId, text }) => ({ command: String(calls.get(toolCallId)?.["command"]), text }));
}

function read(path: string): Call {
  return ["read_file", { path }];
}

/** A command that changes nothing, so that it may run again after a crash. */
function shell(command: string): Call {
  return ["shell", { command, repeatable: true }];
}

type Call = readonly [name: string, input: object];

function say(text: string, ...calls: readonly Call[]): Reply {
  return { text, toolCalls: calls.map(([name, input]) => ({ name, input })) };
}
