// The line of the agent's code that called us, for errors. Best effort: engines without stacks give none.

// Without the scheme: some loaders give frames as paths, others as addresses.
const OWN = import.meta.url.replace(/^file:\/\//, "").replace(/\/(kernel\/)?[^/]*$/, "/");

/** `file:line:column` of the nearest frame outside this package and outside the engine. */
export function callerLine(here: Error = new Error()): string | undefined {
  const frames = (here.stack ?? "").split("\n").slice(1);
  const frame = frames.find(
    (line) => !line.includes(OWN) && !line.includes("node:") && !line.includes("<anonymous>"),
  );
  const place =
    frame === undefined ? undefined : /\(?((?:file:\/\/)?\/?[^()\s]+:\d+:\d+)\)?$/.exec(frame.trim());
  return place?.[1]?.replace("file://", "");
}

/** The same for later: a stack is cheaper to take than to write out, and most waits never need theirs. */
export function laterCallerLine(): () => string | undefined {
  const here = new Error();
  return () => callerLine(here);
}
