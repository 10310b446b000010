// Guards of what sessions of one family have to do with each other, each taken out: a part of the list in `mutants.ts`.

const MEMORY = "packages/runtime/src/memory/memory-storage.test.ts";

export const FAMILY_MUTANTS = [
  {
    name: "K16: a session that stored too little to restart asks its relatives nothing again",
    file: "packages/runtime/src/sessions/live-sessions.ts",
    find: "if (isStoredTooShort(snapshot.session))",
    replace: "if (isStoredTooShort(snapshot.session) && snapshot.holds.length < 0)",
    tests: ["packages/runtime/src/behaviour/becoming-persistent.test.ts"],
    test: "a minimal parent that stored no journal is paused with the commands that help, and its child is kept",
    hangs: true,
  },
  {
    name: "B1, moving-3: who pays for another that goes on does not move",
    file: "packages/core/src/transaction/apply-change.ts",
    find: "paid: account === undefined ? [] : paidBy(rows, session),",
    replace: "paid: [],",
    tests: [MEMORY],
    test: "ST45: a session that pays for an active session below an ended child does not move",
  },
  {
    name: "K10c, ST34: what an heir has not read is unread",
    file: "packages/core/src/transaction/apply-change.ts",
    find: "reader = unread === undefined ? undefined : activeSuccessor(rows, sessionId);",
    replace: "reader = unread === undefined ? undefined : rows.find(sessionId)?.session;",
    tests: [MEMORY],
    test: "ST34: no second unread signal goes to the successor of the session, which reads the first in its place",
  },
  {
    name: "B1, K16: what a life that is gone was held for pays for nothing in the next",
    file: "packages/runtime/src/tasks/spending.ts",
    find: "new Spending(host, startsOver ? [] : holds, startsOver ? holds : [], remaining);",
    replace: "new Spending(host, startsOver ? [] : holds, [], remaining);",
    tests: ["packages/runtime/src/behaviour/persistence.test.ts"],
    test: "minimal: the holds of an earlier life are charged, and do not count for the next life",
  },
  {
    name: "L5: a child whose creation is sent again is counted once",
    file: "packages/core/src/transaction/cascade.ts",
    find: "children: asking.children - 1 }",
    replace: "children: asking.children }",
    tests: [MEMORY],
    test: "ST26: a child is counted once when the batch that creates it is sent again without records",
  },
  {
    name: "S1, K16: what is asked again can be answered again",
    file: "packages/core/src/session/requests.ts",
    find: "return life === undefined ? name :",
    replace: "return life !== -1 ? name :",
    tests: ["packages/runtime/src/behaviour/questions.test.ts"],
    test: "a minimal session that restarts from scratch may be answered once in each incarnation",
  },
  {
    name: "S4, S4a: an end that was told where a family came from is told where it is brought in",
    file: "packages/core/src/transaction/apply-change.ts",
    find: "if (imported !== undefined) tellEndsOf(tx, imported);",
    replace: "",
    tests: ["packages/runtime/src/session/missed-outcomes.test.ts"],
    test: "a parent that is brought in before its child, which has ended meanwhile, hears of that",
    hangs: true,
  },
];
