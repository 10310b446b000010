import { expect, onTestFinished, test, vi } from "vitest";
import { startRunner } from "./runner.ts";

// npm only warns of `engines`, and a program that imports us has no launcher.
test("a runner that a program starts on a Node with known holes warns of it", async () => {
  const own = process.versions;
  onTestFinished(() => void Object.defineProperty(process, "versions", { value: own }));
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const start = () =>
    startRunner({ url: "http://127.0.0.1:9", workspace: "/", agents: [], signal: AbortSignal.abort() }).catch(
      () => {},
    );
  await start();
  expect(warn).not.toHaveBeenCalled();
  Object.defineProperty(process, "versions", { value: { ...own, node: "22.23.3" } });
  await start();
  expect(warn.mock.calls).toEqual([[expect.stringMatching(/^Node 22\.23\.3 lacks the security fixes/)]]);
});
