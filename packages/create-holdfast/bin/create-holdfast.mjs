#!/usr/bin/env node
// `npm create holdfast@latest NAME`: makes a folder with Holdfast and an agent in it.
//
//   - The folder appears whole: it is made beside its place, and moved there when it is complete. A create that
//     was interrupted, or whose registry failed, leaves nothing in the way of the next one.
//   - A folder with files in it is not touched.
//   - Holdfast itself writes the agents (`holdfast init`), so they fit the version that was installed.
//
// An old Node reads this file first. It is plain JavaScript that Node 16 parses, and it imports nothing before
// the check.

/** As in the launcher of `holdfast`. */
const FLOORS = ["22.23.4", "24.22.1", "26.12.1"];
const FETCHABLE = ["linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64"];

if (canRun(process.versions.node)) {
  const { create } = await import("./create.mjs");
  process.exit(await create(process.argv.slice(2)));
} else {
  const platform = `${process.platform}-${process.arch}`;
  const fetched = FETCHABLE.includes(platform)
    ? `, or run: npx -y -p node-${platform}@24 -p create-holdfast create-holdfast my-agents`
    : "";
  process.stderr.write(
    `error[E_NODE_VERSION]: holdfast needs Node ${FLOORS.join(", ")} or a later one of these lines, and ${process.execPath} is ` +
      `Node ${process.versions.node}: install Node 24 from https://nodejs.org${fetched}\n`,
  );
  process.exit(11);
}

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
