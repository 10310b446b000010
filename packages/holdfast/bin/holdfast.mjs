#!/usr/bin/env node
// The `holdfast` command: a Node that can run us goes on to `launch.mjs`. Another one hands over to the Node
// that setup fetched, or says in one line which Node is needed and how to get it.
//
// An old Node reads this file first: it is plain JavaScript that Node 16 parses, and imports nothing
// before the check.

/** The first Node of each line that has the security fixes of October 2026. `engines` says the same. */
const FLOORS = ["22.23.4", "24.22.1", "26.12.1"];
/** npm has a package with Node in it for these. */
const FETCHABLE = ["linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64"];

if (canRun(process.versions.node)) await import("./launch.mjs");
else await leave();

/** A line of Node without a floor is newer than all of them, or has no long-term support. */
function canRun(version) {
  const [major, minor, patch] = parts(version);
  const floor = FLOORS.map(parts).find(([one]) => one === major);
  if (floor === undefined) return FLOORS.map(parts).every(([one]) => one < major);
  return minor > floor[1] || (minor === floor[1] && patch >= floor[2]);
}

function parts(version) {
  return version.split(/[.-]/, 3).map(Number);
}

/** The fetched Node runs in our place, if there is one: in a checkout. */
async function leave() {
  const { handOverToFetchedNode } = await import("./node-version.mjs");
  await handOverToFetchedNode();
  const platform = `${process.platform}-${process.arch}`;
  const words = process.argv.slice(2);
  const isPlain = words.every((word) => /^[\w./:=@-]+$/.test(word));
  const called = ["holdfast", ...(isPlain ? words : [])].join(" ");
  const fetched = FETCHABLE.includes(platform)
    ? `, or run: npx -y -p node-${platform}@24 -p holdfast ${called}`
    : "";
  process.stderr.write(
    `error[E_NODE_VERSION]: holdfast needs Node ${FLOORS.join(", ")} or a later one of these lines, and ${process.execPath} is ` +
      `Node ${process.versions.node}: install Node 24 from https://nodejs.org${fetched}\n`,
  );
  process.exit(11);
}
