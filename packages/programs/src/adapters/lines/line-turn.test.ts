// The end of a turn, whichever protocol its dialogue speaks.

import { Redactor } from "@holdfast/system";
import { ProcessSupervisor } from "@holdfast/system/processes";
import { afterAll, expect, test } from "vitest";

import type { LineDialogue, MakeDialogue } from "./line-dialogue.ts";
import { LineProgram } from "./line-program.ts";
import { LineTurn } from "./line-turn.ts";
import { LineWire } from "./line-wire.ts";

const env = { PATH: process.env["PATH"] ?? "" };
const supervisor = new ProcessSupervisor({ environment: env, namespaces: "never" });
afterAll(() => supervisor.close("the tests are over"));

const SILENT: LineDialogue = {
  hasStarted: true,
  begin: () => {},
  message: () => {},
  answer: () => false,
  steer: () => Promise.resolve("rejected"),
  interrupt: () => {},
};

async function turnOf(
  command: string,
  make: MakeDialogue,
  times: { readonly exitMs?: number; readonly interruptMs?: number } = {},
): Promise<LineTurn> {
  const argv = ["/bin/sh", "-c", command] as const;
  const process = await supervisor.start({ argv, cwd: "/", env, keepsInputOpen: true });
  const turn = {
    prompt: "",
    folder: "/",
    model: null,
    permissionMode: "default",
    agentSessionId: "own",
    resumedId: "own",
    isCutOff: false,
    wayBack: undefined,
    unpriced: [],
  };
  const limits = { askMs: 2_000, graceMs: 2_000 };
  const program = new LineProgram(process, new LineWire(new Redactor([])), { make, turn, limits, ...times });
  return new LineTurn(program, times);
}

test("a program that has opened another session is ended at once", async () => {
  const startedAt = performance.now();
  const turn = await turnOf(
    "exec sleep 60",
    ({ end }) => ({ ...SILENT, begin: () => end({ type: "unknown_session" }) }),
    { exitMs: 60_000 },
  );
  expect(await turn.ended).toEqual({ type: "unknown_session" });
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});

test("an error after an abort is the abort", async () => {
  const turn = await turnOf("exec cat", ({ end }) => ({
    ...SILENT,
    interrupt: () => end({ type: "error", message: "it was interrupted" }),
  }));
  expect(await turn.abort()).toMatchObject({ type: "aborted", process: { means: "request" } });
});

test("the input of an aborted program is closed, except where it must stay open for the answer", async () => {
  const closing = await turnOf("exec cat", () => SILENT);
  expect(await closing.abort()).toMatchObject({ type: "aborted", process: { means: "request" } });
  const open = await turnOf("exec cat", () => SILENT, { interruptMs: 60_000 });
  expect(await open.abort()).toMatchObject({ type: "aborted", process: { means: "SIGTERM" } });
});
