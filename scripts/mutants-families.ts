// Guards of what sessions of one family have to do with each other, each taken out: a part of the list in `mutants.ts`.

const MEMORY = "packages/runtime/src/memory-storage.test.ts";
const CASCADE = "packages/core/src/session/cascade.ts";

export const FAMILY_MUTANTS = [
  {
    name: "B1, MV3: who pays for another that goes on does not move",
    file: CASCADE,
    find: "return session.account === undefined ? [] : paidBy(door, session);",
    replace: "return [];",
    tests: [MEMORY],
  },
  {
    name: "K10c, ST34: what an heir has not read is unread",
    file: CASCADE,
    find: "reader = unread === undefined ? undefined : goingOn(door, sessionId);",
    replace: "reader = unread === undefined ? undefined : door.session(sessionId);",
    tests: [MEMORY],
  },
  {
    name: "S4, K11: a child that is asked for again tells its end again",
    file: CASCADE,
    find: "for (const { signalId, ...signal } of tellAgain(parent, lastHeir(door, child)))",
    replace: "for (const { signalId, ...signal } of tellAgain(parent, lastHeir(door, child)).slice(2))",
    tests: [MEMORY],
  },
  {
    name: "K1, K11: what another life asked for is not what this one did",
    file: CASCADE,
    find: "agent.name === change.agent.name && seed === change.seed;",
    replace: "agent.name === change.agent.name && seed >= 0;",
    tests: [MEMORY],
  },
  {
    name: "B1, K11: what a life that is gone was held for pays for nothing in the next",
    file: "packages/runtime/src/spending.ts",
    find: "new Spending(host, startsOver ? [] : holds, startsOver ? holds : [], remaining);",
    replace: "new Spending(host, startsOver ? [] : holds, [], remaining);",
    tests: ["packages/runtime/src/persistence.test.ts"],
  },
  {
    name: "S1, K11: who starts over, too, is told the same again",
    file: "packages/core/src/kernel/child-asks.ts",
    find: "return this.#forgetful?.has(child) === true",
    replace: "return this.#forgetful?.has(-1) === true",
    tests: ["packages/runtime/src/starting-over.test.ts"],
  },
  {
    name: "S1, K11: what another life told is not something else that this one tells",
    file: "packages/core/src/kernel/child-asks.ts",
    find: "return this.life === undefined ? own :",
    replace: "return this.life !== -1 ? own :",
    tests: ["packages/runtime/src/starting-over.test.ts"],
  },
  {
    name: "S1, K11: an answer is taken by the life that asked",
    file: "packages/core/src/kernel/child-asks.ts",
    find: "if (life === this.life) return false;",
    replace: "if (life !== -1) return false;",
    tests: ["packages/runtime/src/starting-over.test.ts"],
  },
  {
    name: "S2, K11: what a child asked is unread until it is answered",
    file: "packages/runtime/src/session-claim.ts",
    find: "taken.add(record.signalId);",
    replace: "",
    tests: ["packages/runtime/src/starting-over.test.ts"],
  },
  {
    name: "L5, K11: a child that is asked for again is counted once",
    file: CASCADE,
    find: "children: asking.children - 1 }",
    replace: "children: asking.children }",
    tests: [MEMORY],
  },
  {
    name: "S4, MV1: a child that is asked for where its parent moved to is heard there",
    file: "packages/runtime/src/move-session.ts",
    find: "if (persistence === undefined) return { ...seen, ids };",
    replace: "if (persistence !== null) return { ...seen, ids };",
    tests: ["packages/runtime/src/move-session.test.ts"],
  },
  {
    name: "S1, K11: what is asked again can be answered again",
    file: "packages/core/src/session/requests.ts",
    find: "return life === undefined ? name :",
    replace: "return life !== -1 ? name :",
    tests: ["packages/runtime/src/starting-over.test.ts"],
  },
  {
    name: "S4, S4a: an end that was told where a family came from is told where it is brought in",
    file: CASCADE,
    find: "if (session !== undefined) tellEndsOf(door, session, now);",
    replace: "",
    tests: ["packages/runtime/src/told-again.test.ts"],
  },
];
