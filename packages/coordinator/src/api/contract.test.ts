import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mayCall, METHODS } from "./contract.ts";

const KINDS = ["admin", "user", "runner", "job", "registration", "none"] as const;

test("docs/protocol.md lists the route and the callers of every method", () => {
  const page = readFileSync(new URL("../../../../docs/protocol.md", import.meta.url), "utf8");
  const documented = page.split("\n").filter((line) => /^\| \w+Service\./.test(line));
  const rows = METHODS.map((method) => {
    const routes = method.rules.map(({ verb, path }) => `\`${verb} ${path}\``).join(", ");
    const marks = KINDS.map((kind) => (mayCall(method, kind) ? "yes" : "")).join(" | ");
    return `| ${method.name} | ${routes} | ${marks} |`;
  });
  expect(documented).toEqual(rows);
});

test("nobody but an admin may make tokens, read the audit or remove runners, and none may do anything but ask for health", () => {
  const callersOf = (names: RegExp) =>
    new Set(METHODS.filter(({ name }) => names.test(name)).flatMap(({ callers }) => [...callers]));
  expect(callersOf(/^(TokenService|AuditService)\.|^RunnerService\.(List|Delete)$/)).toEqual(
    new Set(["admin"]),
  );
  expect(METHODS.filter((method) => mayCall(method, "none")).map(({ name }) => name)).toEqual([
    "HealthService.Get",
  ]);
  expect(callersOf(/^RunnerService\.(Poll|Register|Deregister)$/)).toEqual(
    new Set(["runner", "registration"]),
  );
  expect(METHODS.filter(({ callers }) => callers.has("registration")).map(({ name }) => name)).toEqual([
    "RunnerService.Register",
  ]);
});
