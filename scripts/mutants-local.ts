// Guards of the local stack and of processes that hold secrets, each taken out: a part of the list in `mutants.ts`.

const SECRETS = "packages/holdfast/src/behaviour/secrets.test.ts";
const STACK = "packages/holdfast/src/behaviour/local-stack.test.ts";
const STACK_LOG = "packages/holdfast/src/stack-log/stack-log.test.ts";

export const LOCAL_MUTANTS = [
  {
    name: "X1: a process that holds a secret does not print it",
    marker: "output-not-redacted",
    part: "redactor.text(text)",
    becomes: "text",
    tests: [SECRETS],
    test: "the secret is in nothing that an agent prints, and not in the error of a crash",
  },
  {
    name: "X1: a core file of a process that holds a secret has no memory",
    marker: "memory-in-core-files",
    part: '"0"',
    becomes: '"33"',
    tests: [STACK],
    test: "a runner that dies with a secret shows it neither in the log nor in a core file",
  },
  {
    name: "X1: the stack's log shows no secret",
    marker: "log-not-redacted",
    part: "this.#redacted(text)",
    becomes: "text",
    tests: [STACK_LOG],
    test: "a line is written without the secrets that the stack holds",
  },
];
