// Guards of the coordinator, each taken out: a part of the list in `mutants.ts`.

const API = "packages/coordinator/src/api/";
const DISPATCHER = "packages/coordinator/src/dispatch/dispatcher.ts";
const LOST_ANSWERS = "packages/coordinator/src/dispatch/lost-answers.test.ts";
const SCOPE = "packages/coordinator/src/scope.test.ts";

export const COORDINATOR_MUTANTS = [
  {
    name: "X3: another's session is told like one that is not there",
    file: "packages/coordinator/src/services/session-scope.ts",
    find: "return session.placement?.owner === caller.name;",
    replace: "return session.placement?.owner !== undefined;",
    tests: [SCOPE],
  },
  {
    name: "O1: only who holds a session writes to it",
    file: DISPATCHER,
    find: "if (claim?.owner !== runnerId) return false;",
    replace: "if (claim === undefined) return false;",
    tests: [SCOPE, "packages/coordinator/src/defects.test.ts"],
  },
  {
    name: "O7: who holds a session since before a restart hears what arrived",
    file: DISPATCHER,
    find: "if (known?.runnerId !== owner || known.inbox < inbox) seat.arrived(sessionId, true);",
    replace: "",
    tests: ["packages/coordinator/src/dispatch.test.ts"],
  },
  {
    name: "S2: what came by way of another coordinator is looked for",
    file: DISPATCHER,
    find: "for (const sessionId of await this.#holdings.look(seat.runnerId)) seat.arrived(sessionId, true);",
    replace: "",
    tests: ["packages/coordinator/src/dispatch/held-elsewhere.test.ts"],
  },
  {
    name: "O6: what storage could not give is given back",
    file: DISPATCHER,
    find: "this.#owe(sessionId, { runnerId, asked });\n      return undefined;",
    replace: "return undefined;",
    tests: [LOST_ANSWERS],
  },
  {
    name: "O1: a claim that another coordinator gave is not given back",
    file: DISPATCHER,
    find: "claim?.owner === runnerId && claim.until === until ? claim.token : undefined;",
    replace: "claim?.owner === runnerId ? claim.token : until && undefined;",
    tests: [LOST_ANSWERS],
  },
  {
    name: "O1: a poll that was overtaken takes nothing away",
    file: "packages/coordinator/src/dispatch/seat.ts",
    find: "if (this.#newest?.process === process && number < this.#newest.number) return true;",
    replace: "",
    tests: [LOST_ANSWERS],
  },
  {
    name: "L4: what was lost twice is tried alone",
    file: "packages/coordinator/src/dispatch/rules.ts",
    find: "if (candidate.suspectSince === undefined) {",
    replace: "if (true) {",
    tests: ["packages/coordinator/src/dispatch/suspects.test.ts"],
  },
  {
    name: "L4: which runners hold a suspect is read in storage, also by a coordinator that did not give it",
    file: "packages/coordinator/src/dispatch/dispatcher.ts",
    find: "...(suspectSince === undefined ? {} : { suspectSince }),",
    replace: "",
    tests: ["packages/coordinator/src/dispatch/suspects.test.ts"],
  },
  {
    name: "O6: a demand must be met",
    file: "packages/coordinator/src/dispatch/rules.ts",
    find: "isOwnersOf(runner, needs) && meets(runner, needs);",
    replace: "isOwnersOf(runner, needs);",
    tests: ["packages/coordinator/src/dispatch/rules.test.ts"],
  },
  {
    name: "O8: nobody waits behind a priority for ever",
    file: "packages/coordinator/src/dispatch/rules.ts",
    find: "now - since >= STARVING_MS ? Infinity : priority;",
    replace: "now - since < 0 ? Infinity : priority;",
    tests: ["packages/coordinator/src/dispatch/rules.test.ts"],
  },
  {
    name: "T4: a registration token is used once",
    file: "packages/coordinator/src/tokens.ts",
    find: "    if (token.usedAt !== undefined) return process",
    replace: "    if (token.usedAt === -1) return process",
    tests: ["packages/coordinator/src/tokens.test.ts"],
  },
  {
    name: "T3: a revoked token is nobody's",
    file: "packages/coordinator/src/tokens.ts",
    find: 'if (revokedAt !== undefined) return "revoked";',
    replace: "void revokedAt;",
    tests: ["packages/coordinator/src/tokens.test.ts"],
  },
  {
    name: "W2: what did not arrive is told again",
    file: "packages/coordinator/src/dispatch/seat.ts",
    find: "for (const [sessionId, awaited] of this.#toldArrivals) this.arrived(sessionId, awaited);",
    replace: "",
    tests: ["packages/coordinator/src/dispatch.test.ts"],
  },
  {
    name: "L7: another body under a key is a conflict",
    file: "packages/coordinator/src/services/session-start.ts",
    find: "stored.input === change.input &&",
    replace: "",
    tests: [SCOPE],
  },
  {
    name: "A1: a role that the contract does not list may not call",
    file: `${API}contract.ts`,
    find: "return method.isOpen || method.callers.has(kind);",
    replace: "return true;",
    tests: [`${API}contract.test.ts`],
  },
  {
    name: "A2: an integer that would be rounded is refused",
    file: `${API}json-spans.ts`,
    find: "if (isRounded(literal))",
    replace: 'if (literal === "")',
    tests: [`${API}json-spans.test.ts`],
  },
  {
    name: "A3: a page of another origin may not call",
    file: `${API}gates.ts`,
    find: "if (origins.length > 1 || !origins.every(isOurs)) {",
    replace: "if (origins.length > 1) {",
    tests: [`${API}gates.test.ts`],
  },
  {
    name: "V2: nothing is made for a reader that has much to read",
    file: `${API}event-stream.ts`,
    find: "if (response.writableLength > limits.unreadBytes && !(await",
    replace: "if (response.destroyed && !(await",
    tests: ["packages/coordinator/src/streams.test.ts"],
  },
  {
    name: "A4: a token does no more than its rate lets it",
    file: `${API}rates.ts`,
    find: "if (left < 1) {",
    replace: "if (left < -Infinity) {",
    tests: [`${API}rates.test.ts`],
  },
];
