// `nodeWarning`: what to say of a Node that lacks the security fixes of October 2026, which closed holes in
// Brotli, TLS and DNS among others.
//
// The command does not start on such a Node. A program that imports Holdfast does, because npm only warns of
// `engines`.

import { isOlder } from "./package-version.ts";

/** The first Node of each line with the fixes. `engines` and the launcher say the same. */
export const NODE_FLOORS: readonly string[] = ["22.23.4", "24.22.1", "26.12.1"];

/** @returns `undefined` for a Node that has the fixes. */
export function nodeWarning(version: string = process.versions.node): string | undefined {
  const floor = NODE_FLOORS.find((one) => lineOf(one) === lineOf(version));
  // A line without a floor has no long-term support, unless it is newer than all of them.
  const isOld = floor === undefined ? lineOf(version) < lineOf(NODE_FLOORS.at(-1)!) : isOlder(version, floor);
  if (!isOld) return undefined;
  return `Node ${version} lacks the security fixes of October 2026: use Node ${NODE_FLOORS.join(", ")} or a later one of these lines`;
}

function lineOf(version: string): number {
  return Number(version.split(".", 1)[0]);
}
