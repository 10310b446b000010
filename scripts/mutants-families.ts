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
];
