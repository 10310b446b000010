// A rule about calls of git: a repository that an agent wrote must not name programs that run outside of its
// sandbox.

import { child, nameOf, type Node, type Tree, type Violation } from "./tree.ts";

const STARTERS = /^(spawn|spawnSync|execFile|execFileSync)$/;

/** Every call of git in a package begins with the options of `gitOptions` (decision 46). */
export function gitHasOptions(tree: Tree): readonly Violation[] {
  return tree.sources
    .filter(({ packageFolder, isTest }) => packageFolder !== undefined && !isTest)
    .flatMap((source) => {
      const violations: Violation[] = [];
      source.walk((node) => {
        if (!isCallOfGit(node) || nameOf(optionsOf(node)) === "gitOptions") return;
        const what = "a call of git without `...gitOptions(…)`, so a repository may name programs for it";
        violations.push({ file: source.file, line: source.lineAt(node.start), what });
      });
      return violations;
    });
}

/** `["git", …]` or `spawn("git", …)`. */
function isCallOfGit(node: Node): boolean {
  const isList = node.type === "ArrayExpression" && list(node, "elements").length > 1;
  const isStart = node.type === "CallExpression" && STARTERS.test(nameOf(child(node, "callee")) ?? "");
  const [first] = isList ? list(node, "elements") : isStart ? list(node, "arguments") : [];
  return first?.["value"] === "git";
}

/** The function whose result stands first among the arguments. */
function optionsOf(node: Node): Node | undefined {
  const [, second] = node.type === "ArrayExpression" ? list(node, "elements") : list(node, "arguments");
  const spread = second?.type === "ArrayExpression" ? list(second, "elements")[0] : second;
  const call = spread?.type === "SpreadElement" ? child(spread, "argument") : undefined;
  return call === undefined ? undefined : child(call, "callee");
}

function list(node: Node, key: string): readonly Node[] {
  return [node[key]].flat() as readonly Node[];
}
