// Patterns for calls of tools in other formats, as patterns of permission rules.
//
//   - A pattern of an `allow` is mapped to patterns that match no more than it does; if there are none, it is
//     dropped.
//   - A pattern of an `ask` or a `deny` is mapped to patterns that match no less; if there are none, to the
//     whole tool.
//
// The formats disagree on stars: one crosses the folders of a path in OpenCode and none in a glob. Both rules
// hold for either meaning.

/** Patterns, or the whole tool; no patterns for nothing. */
export type MappedPattern = readonly string[] | "whole tool";

/** A pattern for a command line: `git diff`, `git diff:*`, `git diff *`. */
export function commandPattern(pattern: string, isAllow: boolean): MappedPattern {
  const words = pattern.trim().replace(/:\*$/, " *").split(/\s+/);
  const isOpen = words.at(-1) === "*";
  const literal = isOpen ? words.slice(0, -1) : words;
  const wild = literal.findIndex((word) => /[*?]/.test(word));
  if (wild < 0) {
    if (literal.length === 0) return "whole tool";
    return [isOpen ? `${literal.join(" ")}:*` : literal.join(" ")];
  }
  if (isAllow) {
    // `git diff*` also matches `git difftool`; as a pattern of words it matches less.
    const last = literal.at(-1) ?? "";
    const isTail = wild === literal.length - 1 && !isOpen && /^[^*?]+\*$/.test(last);
    // An `allow` must match no more than it did.
    return isTail ? [`${literal.join(" ").slice(0, -1)}:*`] : [];
  }
  // An `ask` or a `deny` must match no less than it did.
  return wild === 0 ? "whole tool" : [`${literal.slice(0, wild).join(" ")}:*`];
}

/** A pattern for a path below the workspace. */
export function pathPattern(pattern: string, isAllow: boolean): MappedPattern {
  const path = pattern.trim().replace(/^(\.\/)+/, "");
  if (path === "*" || path === "**") return "whole tool";
  // Absolute paths, paths of the home folder, steps upward, and letters with a meaning in globs.
  const isForeign = path === "" || /^[/~$]|\.\.|[[\]{}()!+@|\\]/.test(path);
  if (isForeign) return isAllow ? [] : "whole tool";
  if (isAllow) {
    // A step of two stars stands for one folder or more in OpenCode, and also for none in a glob. At the end
    // it stands for a file.
    const steps = path.split("/").map((step, index, all) => {
      if (step !== "**") return step;
      return index === all.length - 1 ? "**/*" : "*/**";
    });
    return [steps.join("/")];
  }
  return coveringPaths(path.replace(/\/$/, ""));
}

function coveringPaths(path: string): MappedPattern {
  const steps = path.split("/");
  const wild = steps.findIndex((step) => /[*?]/.test(step));
  const below = (paths: readonly string[]): string[] => paths.flatMap((one) => [one, `${one}/**`]);
  if (wild < 0) return below(steps.length === 1 ? [path, `**/${path}`] : [path]);
  if (wild > 0) return [`${steps.slice(0, wild).join("/")}/**`];
  const last = steps.at(-1) ?? "";
  const isAnyFolder = steps.length === 1 || (steps.length === 2 && steps[0] === "**");
  if (!isAnyFolder || !/^\*?[^*?]+$/.test(last)) return "whole tool";
  return below([`**/${last}`]);
}

/** The host of a fetch: `domain:example.com` or `example.com`. */
export function hostPattern(pattern: string, isAllow: boolean): MappedPattern {
  const host = pattern
    .trim()
    .replace(/^domain:/, "")
    .toLowerCase();
  if (host === "*") return "whole tool";
  const [, name, port] = /^([a-z0-9.-]+)(:\d+)?$/.exec(host) ?? [];
  if (name === undefined) return isAllow ? [] : "whole tool";
  if (!isAllow) return [name, `*.${name}`];
  return port === undefined ? [name] : []; // Rules look at the host alone.
}
