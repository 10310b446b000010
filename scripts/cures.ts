// `CURES`, `WITHOUT_CURE`: for each code of an error the test that meets it, does what its advice says, and
// sees it gone.
//
// The rows here cite tests that have another subject, too. Most codes have a row in a `cures.test.ts`, by a
// call of `cure(code, …)`.

/** By the code: a file and the title of a test in it, in which the code stands. */
export const CURES: Readonly<Record<string, readonly [file: string, title: string]>> = {
  agent_version: [
    "packages/runtime/src/behaviour/versions.test.ts",
    "a session with an unknown version is parked with that reason, and its own version resumes it",
  ],
  budget_exceeded: [
    "packages/holdfast/src/behaviour/families.test.ts",
    "a budget that its children use up ends `run` with exit code 9, and a raise and a resume go on",
  ],
  uncommitted_changes: [
    "packages/workspace/src/worktrees/worktrees.test.ts",
    "open work of both sides is kept by a merge, and a refusal has committed nothing",
  ],
  conflict: [
    "packages/workspace/src/worktrees/worktrees.test.ts",
    "a branch is merged into the branch of the project, and a conflict leaves the project as it was",
  ],
  duplicate_runner: [
    "packages/holdfast/src/fleet/runner.test.ts",
    "a runner with another process's token waits until that process has gone, and names it",
  ],
  locked: [
    "packages/storage/src/sqlite/file/ownership.test.ts",
    "O13: a second process is refused with the pid of the owner; afterwards it may own the file",
  ],
  model_auth: [
    "packages/agents/src/models/model-secrets.test.ts",
    "each call reads the key again, so that a new one counts at once",
  ],
  model_unavailable: [
    "packages/agents/src/models/model-budget.test.ts",
    "an outage of the model costs nothing and pauses the session, and a resume continues it",
  ],
  program_missing: [
    "packages/holdfast/src/behaviour/external-profiles.test.ts",
    "a profile of the user runs a program that is not on the PATH, with the variables that it names",
  ],
  quota_exceeded: [
    "packages/runtime/src/behaviour/quota.test.ts",
    "a usage limit pauses the session, and an unpause asks again without repeating what was done",
  ],
  rate_limited: [
    "packages/coordinator/src/behaviour/limits-seen.test.ts",
    "a token may make 50 starts at once and 10 a second, and a refused start names the limit and the time to wait",
  ],
  request_timeout: [
    "packages/holdfast/src/fleet/client.test.ts",
    "that fails, is cancelled or takes too long is an error that says so",
  ],
  session_moved: [
    "packages/runtime/src/requests/move-session.test.ts",
    "a moved session resumes in its new storage, and the old storage names it",
  ],
  state_version: [
    "packages/runtime/src/behaviour/typed-state.test.ts",
    "a version that %s is reported with both versions, and the old state stays",
  ],
  storage_full: [
    "packages/holdfast/src/fleet/full-disk.test.ts",
    "D1: on a full disk writes are refused by name, reads succeed, and the coordinator recovers",
  ],
  storage_lost: [
    "packages/holdfast/src/behaviour/database-removed.test.ts",
    "a session that waits ends with exit code 10 when its database is removed, and goes on from the saved copy",
  ],
  storage_unavailable: [
    "packages/storage/src/postgres/behaviour/away.test.ts",
    "every call rejects while the server is away, and the next call works once it is back",
  ],
  unknown_price: [
    "packages/agents/src/models/model-budget.test.ts",
    "a model without a price is refused before the call; a limit of tokens needs none",
  ],
  unsupported_protocol: [
    "packages/coordinator/src/behaviour/scope.test.ts",
    "a registration token is good for one runner; another protocol is refused and leaves it unused",
  ],
};

/** Codes without such a test, each with the reason. */
export const WITHOUT_CURE: Readonly<Record<string, string>> = {
  cancelled: "It tells the agent at its `await` that somebody has ended the session, the task or the wait.",
  external_agent_failed:
    "It reports the end of another vendor's program, and a new session is the only way on.",
  fenced: "It tells a process that another one holds its claim, and the session goes on there.",
  in_use: "It names somebody's program or session that is at work, and asks to wait for its end.",
  internal: "It asks to report a defect.",
  no_matching_runner:
    "A runner that offers the agent is the cure, and every test of a fleet that runs a session starts one.",
  restore_incomplete: "It is the answer of a person who has refused the new session that would be the cure.",
  session_lost:
    "It tells a parent that an ephemeral child is gone, and `respawn` asks for another without a person.",
  storage_readonly:
    "Its cure is another path or a mount that may be written, which only root can change in a test.",
  version_unsupported: "Its cure is another version of Holdfast or of a program, which a test does not have.",
};
