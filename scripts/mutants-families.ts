// Guards of what sessions of one family have to do with each other, each taken out: a part of the list in
// `mutants.ts`.

const MEMORY = "packages/runtime/src/memory/memory-storage.test.ts";

const CALLBACKS = "packages/programs/src/adapters/executor/callbacks.test.ts";

export const FAMILY_MUTANTS = [
  {
    name: "S2: a child that could not be loaded for a moment is tried again",
    marker: "child-not-retried",
    part: "!this.#sessions.closed",
    becomes: "false",
    tests: ["packages/runtime/src/behaviour/storage-away.test.ts"],
    test: "a child gets a signal that arrived while storage refused its load",
  },
  {
    name: "X21: a session with callbacks to come does not complete",
    marker: "callback-given-up",
    part: "expectsCallbacks(ctx, started) || ctx.hasSignal(CHILD_ENDED)",
    becomes: "false",
    tests: [CALLBACKS],
    test: "asked for by the seed's field resumes the parent with the child's result, which then completes",
  },
  {
    name: "X21: a child cannot leave its part of the prompt",
    marker: "callback-unescaped",
    part: "markupText(text)",
    becomes: "text",
    tests: ["packages/programs/src/session/way-back/callback-text.test.ts"],
    test: "stays in its part, alone and among others",
  },
  {
    name: "X22: a task reads no session but its own and those below it",
    marker: "foreign-session-read-by-task",
    part: "row?.parent?.sessionId === this.sessionId",
    becomes: "true",
    tests: ["packages/runtime/src/behaviour/session-signals-of-tasks.test.ts"],
    test: "a task reads its own session and the children of that, and no other session",
  },
  {
    name: "S4c: an end calls back",
    marker: "callback-unsent",
    part: 'notify === "end"',
    becomes: "notify !== undefined",
    tests: [MEMORY],
    test: "ST27: a child that is failed calls its parent back, once, and tells it nothing else",
  },
  {
    name: "S4c: a parent that asked for the end alone is told nothing else",
    marker: "unwanted-event-sent",
    part: "isUnwanted(session, allowed)",
    becomes: "false",
    tests: [MEMORY],
    test: "ST27: a child that is completed calls its parent back, once, and tells it nothing else",
  },
  {
    name: "B1, moving-3: who pays for another that goes on does not move",
    marker: "payer-moves",
    part: "account === undefined ? [] : paidBy(rows, session)",
    becomes: "[]",
    tests: [MEMORY],
    test: "ST45: a session that pays for an active session below an ended child does not move",
  },
  {
    name: "K10c, ST34: what an heir has not read is unread",
    marker: "successor-unread-ignored",
    part: "activeSuccessor(rows, sessionId)",
    becomes: "rows.find(sessionId)?.session",
    tests: [MEMORY],
    test: "ST34: no second unread signal goes to the successor of the session, which reads the first in its place",
  },
  {
    name: "B1, K16: what a life that is gone was held for pays for nothing in the next",
    marker: "earlier-holds-uncharged",
    part: "restarts ? holds : []",
    becomes: "[]",
    tests: ["packages/runtime/src/behaviour/persistence.test.ts"],
    test: "minimal: the holds of an earlier life are charged, and do not count for the next life",
  },
  {
    name: "L5: a child whose creation is sent again is counted once",
    marker: "resent-child-counted",
    part: "asking.children - 1",
    becomes: "asking.children",
    tests: [MEMORY],
    test: "ST26: a child is counted once when the batch that creates it is sent again without records",
  },
  {
    name: "S1, K16: what is asked again can be answered again",
    marker: "repeated-answer-unnamed",
    part: "life === undefined",
    becomes: "true",
    tests: ["packages/runtime/src/behaviour/questions.test.ts"],
    test: "a minimal session that restarts from scratch may be answered once in each incarnation",
  },
  {
    name: "S4a: an imported session gets the ends of the children that did not come along",
    marker: "missing-answers-unsent",
    becomes: "",
    tests: ["packages/runtime/src/session/missed-outcomes.test.ts"],
    test: "a parent that is imported without its child gets the child's end as a failure, and so does a child its request",
    hangs: true,
  },
];
