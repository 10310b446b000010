// The profile of Seatbelt, read as macOS reads it: of the rules that fit an operation, the last one decides.

import { expect, test } from "vitest";

import { seatbeltProfile, type SeatbeltProfile } from "./seatbelt-profile.ts";

const places = {
  root: "/Users/ada/app",
  scratch: "/private/var/folders/x/holdfast-scratch-1",
  programs: ["/Users/ada/.node/bin"],
};
const COMMAND = seatbeltProfile(places);
const PROGRAM = seatbeltProfile({ ...places, program: { written: ["/Users/ada/.claude"] } });

test.each([
  ["reads a file of the folder", "file-read-data", "/Users/ada/app/src/a.ts", "allow"],
  ["writes a file of the folder", "file-write-create", "/Users/ada/app/src/a.ts", "allow"],
  ["reads the repository", "file-read-data", "/Users/ada/app/.git/config", "allow"],
  ["changes the repository", "file-write-data", "/Users/ada/app/.git/config", "deny"],
  ["makes a repository", "file-write-create", "/Users/ada/app/.git", "deny"],
  ["reads Holdfast's folder", "file-read-data", "/Users/ada/app/.holdfast/config.json", "deny"],
  ["writes Holdfast's folder", "file-write-create", "/Users/ada/app/.holdfast/new", "deny"],
  ["reads a key", "file-read-data", "/Users/ada/.ssh/id_ed25519", "deny"],
  ["reads a folder with a longer name", "file-read-data", "/Users/ada/app2/a.ts", "deny"],
  ["reads the keychain", "file-read-data", "/Users/ada/Library/Keychains/login.keychain-db", "deny"],
  ["reads the keychain of the system", "file-read-data", "/Library/Keychains/System.keychain", "deny"],
  ["reads the keys of the machine", "file-read-data", "/private/etc/ssh/ssh_host_rsa_key", "deny"],
  ["writes outside of the folder", "file-write-create", "/Users/ada/work/outside", "deny"],
  ["writes to /private/tmp", "file-write-create", "/private/tmp/x", "deny"],
  ["writes a temporary file", "file-write-create", "/private/var/folders/x/holdfast-scratch-1/t", "allow"],
  ["reads a program of the system", "file-read-data", "/usr/lib/libSystem.B.dylib", "allow"],
  ["reads a program of the user", "file-read-data", "/Users/ada/.node/bin/node", "allow"],
  ["writes a program of the user", "file-write-data", "/Users/ada/.node/bin/node", "deny"],
  ["starts a program", "process-exec", "/bin/sh", "allow"],
  ["reaches an address", "network-outbound", undefined, "deny"],
  ["opens a port", "network-bind", undefined, "deny"],
  ["asks a service of the system", "mach-lookup", undefined, "deny"],
  ["signals a process of the machine", "signal", undefined, "deny"],
] as const)("a command that %s is decided by its last rule", (_what, operation, path, decision) => {
  expect(decide(COMMAND, operation, path)).toBe(decision);
});

test.each([
  ["writes its own folder", "file-write-create", "/Users/ada/.claude/projects/s.jsonl", "allow"],
  ["reads its own folder", "file-read-data", "/Users/ada/.claude/.credentials.json", "allow"],
  ["writes a file of the folder", "file-write-create", "/Users/ada/app/src/a.ts", "allow"],
  ["changes the repository", "file-write-data", "/Users/ada/app/.git/config", "deny"],
  ["reads Holdfast's folder", "file-read-data", "/Users/ada/app/.holdfast/config.json", "deny"],
  ["reads a key", "file-read-data", "/Users/ada/.ssh/id_ed25519", "deny"],
  ["writes outside of its folders", "file-write-create", "/Users/ada/outside", "deny"],
  ["reaches an address", "network-outbound", undefined, "allow"],
  ["signals a process of the machine", "signal", undefined, "deny"],
] as const)("a program that %s is decided by its last rule", (_what, operation, path, decision) => {
  expect(decide(PROGRAM, operation, path)).toBe(decision);
});

test("a path cannot end a rule, because paths are parameters", () => {
  const root = '/tmp/a"))(allow default)(deny file-write* (subpath "/x';
  const hostile = seatbeltProfile({ root, scratch: "/s", programs: [root] });
  expect(hostile.text).not.toContain("allow default");
  expect(hostile.parameters["ROOT"]).toBe(root);
});

type Expression = string | readonly Expression[];

function decide(profile: SeatbeltProfile, operation: string, path: string | undefined): string {
  let decision = "none";
  for (const rule of parse(profile.text)) {
    const [action, ...rest] = rule as readonly Expression[];
    if (action === "version") continue;
    const operations = rest.filter((one) => typeof one === "string");
    const filters = rest.filter((one) => typeof one !== "string");
    const isFor = operations.some(
      (name) =>
        name === "default" ||
        name === operation ||
        (name.endsWith("*") && operation.startsWith(name.slice(0, -1))),
    );
    if (isFor && (filters.length === 0 || filters.some((filter) => fits(filter, path, profile.parameters))))
      decision = String(action);
  }
  return decision;
}

function fits(
  [kind, argument]: readonly Expression[],
  path: string | undefined,
  parameters: SeatbeltProfile["parameters"],
): boolean {
  if (kind === "target" || path === undefined) return false; // The process is not of this sandbox.
  const place =
    typeof argument === "string"
      ? argument.slice(1, -1)
      : (parameters[String(argument?.[1]).slice(1, -1)] ?? "");
  return path === place || (kind === "subpath" && path.startsWith(`${place}/`));
}

/** S-expressions. A text keeps its quotes. */
function parse(source: string): readonly Expression[] {
  const stack: Expression[][] = [[]];
  for (const token of source.match(/[()]|"[^"]*"|[^\s()]+/g) ?? []) {
    if (token === "(") stack.push([]);
    else if (token === ")") {
      const done = stack.pop() ?? [];
      stack.at(-1)?.push(done);
    } else stack.at(-1)?.push(token);
  }
  expect(stack).toHaveLength(1);
  return stack[0] ?? [];
}
