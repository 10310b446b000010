// The programs of `engine`: code that imports the packages, and a fleet of it.

import { lines, type FieldProgram } from "./field-program.ts";

const ENGINE: readonly FieldProgram[] = [
  {
    file: "engine/01-race.mjs",
    expects: "a stop signal that is raced in a loop is never lost",
    says: [
      ...lines(["A", "E", "G"], /.*signal stored; completed "stopped after/),
      ...lines(["B"], /.*signal (stored; completed|refused; failed)/),
      ...lines(["C", "D", "F"], /.*signal stored; (completed|paused\/agent_fault .*\S)/),
    ],
    neverSays: [/signal stored; (failed|cancelled|not settled)/],
  },
  {
    file: "engine/03-outputs.mjs",
    expects: "what comes back from a step is what JSON has of it, or the step is refused",
    says: lines(
      [
        "BigInt",
        "Uint8Array",
        "Map",
        "Set in an object",
        "NaN",
        "undefined in a list",
        "Response of fetch",
        "Error as a value",
        "1e400 of JSON.parse",
        "sparse array",
        "generator",
      ],
      /: effects 1; failed .*cannot be recorded/,
    ).concat(
      // The effect has happened. An instance and a Date are recorded as JSON has them, with a warning.
      lines(
        [
          "class with methods and getter",
          "class with private field",
          "Date (ORM row)",
          "Object.create(proto) row",
        ],
        /: effects 1; completed \{"kind":"Object"/,
      ),
    ),
    neverSays: [/"admin":true/, /not settled/], // The first one would be of every object.
  },
  {
    file: "engine/04b-tenants.mjs",
    expects: "a step sees the AsyncLocalStorage of its own request, or none",
    says: [/^memory \{"own":\d+,"another":0,"none":\d+\}/m, /^sqlite \{"own":\d+,"another":0,"none":\d+\}/m],
  },
  {
    file: "engine/06-rollouts.mjs",
    expects: "an orderly stop lets a step finish within the grace and costs no attempt",
    says: lines(
      [
        "SIGTERM, no retry option",
        "SIGTERM, retry.maxAttempts 3",
        "SIGTERM, retry.maxAttempts 1 (a payment)",
        "SIGTERM, effect once",
      ],
      /: RESULT completed "answer of attempt 1" .*attempts: attempt 1;/,
    ),
  },
  {
    file: "engine/09-dst.mjs",
    expects: "an hourly schedule never pauses",
    says: [
      ...lines(
        ["0 * * * * back", "0 */1 * * * back", "0 0-23 * * * back"],
        / .*: 10-24T23:00 10-25T00:00 10-25T01:00 10-25T02:00 10-25T03:00 10-25T04:00$/,
      ),
      ...lines(["30 2 * * * forward"], / .*: 03-28T01:30 03-29T01:00 03-30T00:30 03-31T00:30$/),
      ...lines(["30 2 * * * back"], / .*: 10-24T00:30 10-25T00:30 10-26T01:30 10-27T01:30$/),
    ],
  },
  {
    file: "engine/10-bundles/run.sh",
    expects: "a server runs in every bundle, and its errors name no inside of the bundle",
    says: [
      ...lines(
        [
          "== node, types stripped",
          "== tsx",
          "== esbuild esm",
          "== esbuild cjs",
          "== esbuild esm minified",
          "== esbuild esm, packages external",
          "== esbuild cjs, packages external (require of esm)",
          "== webpack, cjs output",
          "== vite ssr, noExternal",
        ],
        /\nRESULT 2\nFAULT agent_fault (\S+:1[78]:16|undefined)\nWATCHDOG (ok|.* bundle)/,
      ),
      /^== require\("holdfast"\) in a CommonJS project\nRESULT 1/m,
    ],
  },
  {
    file: "engine/12-errors.mjs",
    expects: "an agent can tell one error of a step from another, such as 429 from 400",
    says: [
      ...lines(["class with status and body"], /: .*"status":429/),
      ...lines(["numeric code (gRPC, MySQL)"], /: .*"code":14/),
      ...lines(["string code"], /: .*"code":"ECONNRESET"/),
      ...lines(["cause chain of 3"], /: .*"deepStatus":500/),
      ...lines(["AggregateError"], /: .*"errors":2/),
      ...lines(["NonRetryableError with status"], /: attempts 1; .*"status":400/),
      ...lines(["zod-like issues"], /: .*"issues":1/),
    ],
  },
  {
    file: "engine/13-same-id.mjs",
    expects: "an id that is used again for another request is noticed",
    says: [
      ...lines(["same id, same input"], /: created false, refunded 500/),
      ...lines(["same id, other input", "same id, other agent"], /: ConflictError\[session_exists\]/),
      /^webhook receipts: stored, duplicate, stored, duplicate, stored, duplicate$/m,
      /^seen: \[1,2,3\]$/m,
    ],
  },
  {
    file: "engine/14c-recover-fails-once.mjs",
    expects: "the work of a dead process is taken over once the database is back",
    says: [
      /^31 s after.*: \["completed","completed","completed"\]$/m,
      /^a new session in this runtime: "done"$/m,
    ],
  },
  {
    file: "engine/16-types/run.sh",
    expects: "the types fit under every setting of the compiler that reads the exports of packages",
    says: lines(
      ["nodenext/nodenext", "node16/node16", "esnext/bundler", "preserve/bundler"].map(
        (set) => `Version 5.9.3 | ${set}`,
      ),
      / \| .*errors 0 $/,
    ),
    // `node10` cannot read `exports`, and TypeScript itself refuses `bundler` with `commonjs`.
    neverSays: [/^Version \S+ \| (nodenext|node16|esnext|preserve)\/.*errors [1-9]/m],
  },
  {
    file: "engine/16-types/schema-input.ts",
    expects: "a caller passes what the schema takes, not what it gives",
    says: [/^0 errors$/m],
  },
  {
    file: "engine/16-types/self.ts",
    expects: "an agent can start itself by its own definition",
    says: [/^0 errors$/m],
    misuse: {
      reason: "TypeScript infers no function that refers to itself: its return type is written down",
      repair: (text) => text.replace("depth: number) =>", "depth: number): Promise<number> =>"),
    },
  },
  {
    file: "engine/21b-old-connection.mjs",
    expects: "a second process reconnects to the new owner of the database",
    says: [
      /^a session that was under way in the client: "job 1 in \w+"$/m,
      /^start by the old connection \(\d{1,4} ms\): "accepted"$/m,
      /^a third one by the new connection: "job 3 in \w+"$/m,
      /^closing the old runtime: closed$/m,
    ],
  },
  {
    file: "engine/25-fake-timers.test.mjs",
    expects: "a test may fake the time of a session",
    says: [/Tests +2 passed/],
    misuse: {
      reason: "a runtime takes its time from `clock`, and the fake timers of a test runner move no session",
      repair: (text) =>
        text
          .replaceAll(
            "const runtime = createRuntime({ storage: new MemoryStorage() });",
            "const clock = new TestClock(); const runtime = createRuntime({ storage: new MemoryStorage(), clock });",
          )
          .replaceAll(
            "vi.advanceTimersByTimeAsync(8 * 86_400_000)",
            "(clock.jump(8 * 86_400_000), clock.advance(10_000))",
          )
          .replace("const agent", 'import { TestClock } from "holdfast/testing";\nconst agent'),
    },
  },
  {
    file: "engine/26-new-code.mjs",
    expects: "a fix of the code reaches live sessions, or they wait with both sides shown and nothing lost",
    says: [
      ...lines(
        [
          "none",
          "closure of a done step",
          "another step after the wait",
          "retry options changed",
          "ctx.now() logged",
        ],
        /.*: {2}kept running; answer stored .*end "published 1 summary/,
      ),
      ...lines(
        [
          "typo fixed in the prompt of a done task",
          "typo fixed in the open question",
          "version raised, same code",
        ],
        /.*: .*paused\/(nondeterminism|no_matching_runner) .*with acceptDrift: completed; .*end "published 1/,
      ),
      ...lines(
        ["a step inserted before the wait", "a done step renamed"],
        /: .*paused\/nondeterminism .*"at":".*"got":".*"expected":".*"fix":".*; answer stored/,
      ),
    ],
    neverSays: [/; end "?(failed|cancelled)/],
  },
  {
    file: "engine/27-stacks.mjs",
    expects: "a program may change how stacks look",
    says: lines(
      [
        "as it is",
        "stackTraceLimit 0",
        "stackTraceLimit Infinity",
        "prepareStackTrace gives frames",
        "prepareStackTrace gives an object",
        "prepareStackTrace throws",
      ],
      /: paused\/agent_fault .*non_durable_await.* \|\| failed .*boom.* \|\| completed "fine"$/,
    ),
  },
];

const FLEET: readonly FieldProgram[] = [
  {
    file: "engine/29-fleet/fleet.mjs",
    args: ["blocked"],
    expects: "a step that blocks its process for 25 s ends, and its neighbours are unhurt",
    says: [
      /^a step that runs execSync for 25 s, on a runner: "built" \[completed\]$/m,
      /^a payment .*: "paid" \[completed\]$/m,
      /^runner deaths: none$/m,
      /^attempts: build attempt 1, pay attempt 1$/m,
    ],
  },
  {
    file: "engine/29-fleet/fleet.mjs",
    args: ["fan"],
    expects: "the limits are the same in every mode",
    says: [
      /^60 tasks of 200000 characters at once, on a runner: 60 \[completed\]$/m,
      /^an output of 9000000 characters, on a runner: 9000000 \[completed\]$/m,
      /^an input of 2 MB by the client: HoldfastError\[too_large\]: .*limit is/m,
    ],
  },
  {
    file: "engine/29-fleet/fleet.mjs",
    args: ["ids"],
    expects: "an id that is used again for another request is noticed by a coordinator, too",
    says: [
      /^same id, same: 1 \[completed\]$/m,
      ...lines(["same id, other input", "same id, other agent"], /: HoldfastError\[session_exists\]/),
      /^same idempotency key, input 2: HoldfastError\[idempotency_conflict\]/m,
    ],
  },
  {
    file: "engine/29-fleet/fleet.mjs",
    args: ["slots"],
    expects: "a parent with more children than a runner has places ends",
    says: [/^a parent with 6 children, one slot: 6 \[completed\]$/m],
  },
  {
    file: "engine/29-fleet/fleet.mjs",
    args: ["burst"],
    expects: "many starts at once are all taken",
    says: [/admin: \{"ok":200\}/, /user's token .*: \{"ok":200\}/],
  },
  {
    file: "engine/29-fleet/fleet.mjs",
    args: ["sigterm"],
    expects: "an orderly stop of a runner lets a step finish within the grace and costs no attempt",
    says: [
      /default grace: "done by attempt 1" \[completed\]/,
      /--grace 20s: "done by attempt 1" \[completed\]/,
    ],
  },
];

export const ENGINE_PROGRAMS: readonly FieldProgram[] = [...ENGINE, ...FLEET];
