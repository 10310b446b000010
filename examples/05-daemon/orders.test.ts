import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { exampleProject } from "../../packages/holdfast/src/testing/example-project.ts";
import type { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = "orders.ts";

describe("a daemon", () => {
  let project: Project;
  beforeEach(() => void (project = exampleProject(import.meta.url)));
  afterEach(() => project.dispose());

  const order = (n: number) => JSON.stringify({ id: `A-${n}`, cents: n });
  const send = (n: number) => project.run("signal", "desk", "order", order(n), "--key", `A-${n}`);

  test("the daemon handles each event once, over a kill, with a checkpoint per turn", async () => {
    const ledger = project.path("ledger.txt");
    const running = project.start(["run", FILE, "--session", "desk", "--input", JSON.stringify({ ledger })]);
    await running.says('waits for signal "order"');
    for (const n of [1, 2]) expect(await send(n)).toMatchObject({ code: 0 });
    await running.says("shipped A-2");
    running.kill("SIGKILL");
    await running.finished;

    // With nobody there, and once more by somebody who heard no answer the first time.
    for (const n of [3, 4, 3]) expect(await send(n)).toMatchObject({ code: 0 });
    const resumed = project.start(["resume", "desk"]);
    resumed.type(JSON.stringify({ name: "order", payload: { id: "A-5", cents: 5 } }));
    await resumed.says("shipped A-5");
    expect(await project.run("signal", "desk", "close")).toMatchObject({ code: 0 });

    const { code, stdout } = await resumed.finished;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ shipped: 5, cents: 15 });
    const shipped = readFileSync(ledger, "utf8").trimEnd().split("\n");
    expect(shipped.map((line) => line.split(" ")[1])).toEqual(["A-1", "A-2", "A-3", "A-4", "A-5"]);
    expect(new Set(shipped.map((line) => line.split(" ")[0])).size).toBe(5);
    const { turn, entries } = await project.json<{ turn: number; entries: object[] }>("show", "desk");
    expect(turn).toBe(5);
    expect(entries).toMatchObject([1, 2, 3, 4, 5].map((n) => ({ content: `shipped A-${n}` })));
  });

  test("a wrong order is refused and remembered, and the next one is handled", ofCampaign, async () => {
    const running = project.start(["run", FILE, "--session", "desk"]);
    await running.says('waits for signal "order"');
    await project.run("signal", "desk", "order", '{"id": "A-1", "cents": null}');
    await running.says("refused: ");
    await project.run("signal", "desk", "order", '"not an order"');
    await send(2);
    await running.says("shipped A-2");
    await project.run("signal", "desk", "close");
    const { code, stdout } = await running.finished;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ shipped: 1, cents: 2 });
  });
});
