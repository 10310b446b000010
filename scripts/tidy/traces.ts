// Rules against traces of the machine that something was made on: they mean nothing on the next one.

import type { Tree, Violation } from "./tree.ts";

const TRACES: readonly { readonly pattern: RegExp; readonly what: string; readonly isAllowedIn?: RegExp }[] =
  [
    {
      pattern: /\/work\/(main|shared|\.\w+)\b|\/root\/|\/tmp\/bash_jobs/,
      what: "a path of somebody's machine",
    },
    { pattern: /registry\.(npmjs|yarnpkg)\.|\bdeb\.debian\.org/, what: "a registry's host" },
    // Tests may read data that lies beside a checkout, when it is there.
    {
      pattern: /\.\.\/shared\b/,
      what: "a path outside the checkout",
      isAllowedIn: /\.test\.ts$|\/testing\//,
    },
  ];

export function noMachinePaths(tree: Tree): readonly Violation[] {
  return tree.files.flatMap((file) =>
    (tree.read(file) ?? "").split("\n").flatMap((text, index) =>
      TRACES.filter(({ pattern, isAllowedIn }) => pattern.test(text) && isAllowedIn?.test(file) !== true).map(
        ({ what }) => ({
          file,
          line: index + 1,
          what: `names ${what}`,
        }),
      ),
    ),
  );
}

/** Recorded download addresses would send everybody to the registry of whoever wrote the lockfile. */
export function lockfileNamesNoAddress(tree: Tree): readonly Violation[] {
  const file = "package-lock.json";
  const at = (tree.read(file) ?? "").split("\n").findIndex((text) => text.includes('"resolved": "http'));
  return at < 0 ? [] : [{ file, line: at + 1, what: "records a download address; see .npmrc" }];
}
