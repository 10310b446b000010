// Guards of the local stack and of processes that hold secrets, each taken out: a part of the list in
// `mutants.ts`.

const SECRETS = "packages/holdfast/src/behaviour/secrets.test.ts";
const STACK_OPTIONS = "packages/holdfast/src/behaviour/local-stack-options.test.ts";
const STACK_LOG = "packages/holdfast/src/stack/stack-log.test.ts";

const TRIALS = "packages/runtime/src/claims/trials.test.ts";

export const LOCAL_MUTANTS = [
  {
    name: "L4b: a claim that meets a trial is released until the trial is over",
    marker: "claim-beside-trial",
    part: "claims.release(sessionId, claim.token);",
    becomes: "return claim;",
    tests: [TRIALS],
    test: "trials-1: a suspect that is claimed beside another one waits without a claim",
  },
  {
    name: "L4b: a suspect is run alone",
    marker: "suspect-not-tried",
    part: "isSuspect(claim.losses)",
    becomes: "isSuspect(claim.losses - 99)",
    tests: [TRIALS],
    test: "trials-1: a session that is no suspect begins after the trial too",
  },
  {
    name: "L4b: a suspect with company is pardoned",
    marker: "company-not-pardoned",
    becomes: "",
    tests: [TRIALS],
    test: "trials-3: a suspect that gets company is pardoned before it runs",
  },
  {
    name: "X15: a process that holds a secret does not print it",
    marker: "output-not-redacted",
    part: "redactor.text(text)",
    becomes: "text",
    tests: [SECRETS],
    test: "the secret is in nothing that an agent prints, and not in the error of a crash",
  },
  {
    name: "X15: a core file of a process that holds a secret has no memory",
    marker: "memory-in-core-files",
    part: '"0"',
    becomes: '"33"',
    tests: [STACK_OPTIONS],
    test: "a runner that dies with a secret shows it neither in the log nor in a core file",
  },
  {
    name: "X15: the stack's log shows no secret",
    marker: "log-not-redacted",
    part: "this.#redacted(text)",
    becomes: "text",
    tests: [STACK_LOG],
    test: "a line is written without the secrets that the stack holds",
  },
];
