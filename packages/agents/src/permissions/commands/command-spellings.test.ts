// The spellings of a command. A rule that misses one of them lets a denied command run.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";

import type { PermissionDecision, PermissionRule } from "../../record/agent-record.ts";
import { decide } from "../permissions.ts";

const shell = { isReading: false, subjectKind: "command" as const, offered: { name: "shell" } };
const rule = (decision: PermissionDecision, pattern: string | null): PermissionRule => ({
  decision,
  tool: "shell",
  pattern,
});
const decisionOf = (line: string, ...rules: readonly PermissionRule[]): PermissionDecision =>
  decide(rules, shell, line).decision;
const FREE = [rule("allow", null), rule("deny", "touch:*")];

/** Spellings of a word that mean the same to each shell. */
const wordOf = (word: string): fc.Arbitrary<string> =>
  fc.constantFrom(
    word,
    `'${word}'`,
    `"${word}"`,
    `${word.slice(0, 2)}""${word.slice(2)}`,
    `\\${word}`,
    `${word.slice(0, 1)}'${word.slice(1)}'`,
    `${word.slice(0, 3)}\\\n${word.slice(3)}`,
  );

const touch: fc.Arbitrary<string> = fc
  .tuple(
    fc.oneof(wordOf("touch"), fc.constantFrom("/usr/bin/touch", "/usr/bin/../bin/touch", "'/usr'/bin/touch")),
    fc.constantFrom(" ", "  ", "\t", " \\\n"),
    fc.constantFrom("f", "'f'", "-- f", "f 2>&1", "f >/dev/null"),
  )
  .map((parts) => parts.join(""));

type Wrap = (line: string) => string;

/** Words and signs of the shell before a command. */
const FRONT: readonly Wrap[] = [
  (line) => line,
  (line) => `X=1 ${line}`,
  (line) => `X='a b' Y= ${line}`,
  (line) => `command ${line}`,
  (line) => `command -p -- ${line}`,
  (line) => `exec ${line}`,
  (line) => `>/dev/null ${line}`,
];

/** Programs that run a command which the line still shows. */
const SHOWN: readonly Wrap[] = [
  (line) => `timeout 5 ${line}`,
  (line) => `timeout -s KILL --kill-after=1 5 ${line}`,
  (line) => `nohup ${line}`,
  (line) => `nice -n 5 ${line}`,
  (line) => `nice -5 ${line}`,
  (line) => `env ${line}`,
  (line) => `env -i -u HOME A=1 PATH=/usr/bin:/bin ${line}`,
  (line) => `setsid -w ${line}`,
  (line) => `stdbuf -o L ${line}`,
  (line) => `xargs ${line} </dev/null`,
  (line) => `echo f | xargs -n 1 ${line}`,
];

/** Ways to put a line into another one. */
const AROUND: readonly Wrap[] = [
  (line) => `if true; then ${line}; fi`,
  (line) => `if ! { ${line}\n}; then :; fi`,
  (line) => `for i in 1; do ${line}; done`,
  (line) => `while ${line}; do break; done`,
  (line) => `until ${line}; do :; done`,
  (line) => `case x in x) ${line};; esac`,
  (line) => `true && ${line}`,
  (line) => `false || ${line}`,
  (line) => `true; ${line}`,
  (line) => `{ true\n${line}\n}`,
  (line) => `true | ${line}`,
  (line) => `true & ${line}; wait`,
  (line) => `( ${line} )`,
  (line) => `{ ${line}; }`,
  (line) => `{ ! { ${line}; }; }`,
  (line) => `echo "$( ${line} )"`,
  (line) => `X=$( ${line} ); echo done`,
  (line) => `{ cat <<END\n$( ${line} )\nEND\n}`,
  (line) => `: \${NONE:-$( ${line} )}`,
  (line) => `{\n# nothing\n${line} # nothing\n}`,
  (line) => `sh -c '${line.replaceAll("'", String.raw`'\''`)}'`,
  (line) => `bash -ec '${line.replaceAll("'", String.raw`'\''`)}' name`,
];

/** Ways that hide the command. */
const HIDING: readonly Wrap[] = [
  (line) => `eval '${line.replaceAll("'", String.raw`'\''`)}'`,
  (line) => `T=touch; $T f # ${line.length}`,
  () => "$(echo touch) f",
  () => "`echo touch` f",
  () => "tou$(echo ch) f",
  () => "/usr/bin/touc? f",
  () => "alias t=touch\nt f",
  () => 't() { touch "$@"; }; t f',
  () => "echo touch f > x; . ./x",
  () => "echo touch f > x; sh x",
  () => "echo touch f | sh",
  () => "sh <<END\ntouch f\nEND",
  () => "X='touch f'; sh -c \"$X\"",
  () => "find . -maxdepth 0 -exec touch f \\;",
  () => "echo f | xargs -I% touch %",
  () => "echo touch | xargs -I% % f",
  () => "trap 'touch f' EXIT",
  () => "env -S 'touch f'",
  () => 'python3 -c \'open("f", "w")\'',
  () => 'echo \'open("f", "w")\' | python3',
  () => "perl -e 'open(F, \">f\")'",
  () => "awk 'BEGIN { system(\"touch f\") }'",
  () => "sed -n '1e touch f' /etc/passwd",
  () => "git -c alias.t='!touch f' t",
  () => "bash -c '{touch,f}'",
  () => "bash -c \"$'touch' f\"",
];

const line: fc.Arbitrary<string> = fc
  .tuple(
    touch,
    fc.array(fc.constantFrom(...SHOWN), { maxLength: 2 }),
    fc.constantFrom(...FRONT),
    fc.array(fc.constantFrom(...AROUND), { maxLength: 2 }),
  )
  .map(([inner, shown, front, around]) =>
    [...shown, front, ...around].reduce((text, wrap) => wrap(text), inner),
  );

describe("a rule that denies touch (permissions-2)", () => {
  test("every spelling that shows the command is refused", () => {
    fc.assert(
      fc.property(line, (spelled) => {
        expect(["deny", "ask"]).toContain(decisionOf(spelled, ...FREE));
      }),
      { numRuns: isCampaign ? 20_000 : 500 },
    );
  });

  test.each([...FRONT, ...SHOWN, ...AROUND].map((wrap) => [wrap("touch f")]))(
    "the line %j is refused",
    (spelled) => {
      expect(decisionOf(spelled, ...FREE)).toBe("deny");
    },
  );

  test.each(HIDING.map((wrap) => [wrap("touch f")]))(
    "the line %j, which hides the command, asks",
    (spelled) => {
      expect(["deny", "ask"]).toContain(decisionOf(spelled, ...FREE));
    },
  );

  test.each([
    "[[ a && touch f ]]",
    "((touch f))",
    "echo &>x touch f",
    "touch f)",
    "'touch f",
    "function t { touch f; }",
  ])("the line %j, which shells read differently, asks", (spelled) => {
    expect(["deny", "ask"]).toContain(decisionOf(spelled, ...FREE));
  });

  test.each([
    "ls",
    "echo touch f",
    "git status --short | head -5",
    "cat <<END\ntouch f\nEND",
    "command -v touch",
    'npm run test -- --watch=false && echo "done"',
    'for f in a b; do wc -l "$f"; done',
    "python3 build.py --touch",
    "node --version",
    "grep -rn touch . > /dev/null 2>&1",
  ])("the line %j runs without a question", (other) => {
    expect(decisionOf(other, ...FREE)).toBe("allow");
  });
});

test(
  "every spelling that shows touch runs it, so that the test above is about the command",
  ofCampaign,
  () => {
    fc.assert(
      fc.property(line, (spelled) => {
        const folder = mkdtempSync(join(tmpdir(), "spelling-"));
        try {
          execFileSync("sh", ["-c", spelled], { cwd: folder, stdio: "ignore", timeout: 10_000 });
        } catch {
          // The exit code says nothing about the file.
        }
        const isThere = existsSync(join(folder, "f"));
        rmSync(folder, { recursive: true });
        expect(isThere, spelled).toBe(true);
      }),
      { numRuns: 300 },
    );
  },
);

test.each([
  ["git push:*", "git -C . push"],
  ["git push:*", "git --no-pager -c a.b=c push origin"],
  ["rm -rf:*", "rm -fr x"],
  ["rm -rf:*", "rm -r -f x"],
  ["rm -rf:*", "rm x --recursive --force"],
  ["rm -rf:*", "/bin/rm -rf x"],
  ["git push --force:*", "git push origin -f"],
  ["npm publish:*", "npm --silent publish"],
  ["docker run", "docker --context x run"],
  ["git push:*", "git $X"],
  ["git push:*", 'git "$X" push'],
])("the rule that denies %j asks for %j (command-rules-4)", (pattern, spelled) => {
  expect(["deny", "ask"]).toContain(decisionOf(spelled, rule("allow", null), rule("deny", pattern)));
  expect(["deny", "ask"]).toContain(decisionOf(spelled, rule("allow", null), rule("ask", pattern)));
});

test.each([
  ["git push:*", "git commit -m push"],
  ["git push:*", "git status"],
  ["git push", "git push origin"],
  ["rm -rf:*", "rm x"],
  ["rm -rf:*", "ls -rf"],
  ["npm publish:*", "npm run publish-docs"],
])("the rule that denies %j does not concern %j", (pattern, other) => {
  expect(decisionOf(other, rule("allow", null), rule("deny", pattern))).toBe("allow");
});

describe("a rule that allows a command (permissions-1)", () => {
  const RULES = [
    rule("allow", "git diff:*"),
    rule("allow", "npm test"),
    rule("allow", "head:*"),
    rule("allow", "sh:*"),
    rule("allow", "node:*"),
    rule("allow", "ssh:*"),
    rule("allow", "eval:*"),
    rule("allow", "xargs:*"),
    rule("allow", "find:*"),
  ];

  test.each([
    "git diff",
    "git diff --stat HEAD -- src",
    "\"git\" 'diff'",
    "/usr/bin/git diff",
    "git diff | head -5",
    "git diff 2>&1 >/dev/null",
    "npm test && git diff",
    "timeout 60 npm test",
    "nice -n 5 git diff --stat",
    "if npm test; then git diff; fi",
    "npm test || true",
    "NODE_ENV=test CI=1 npm test",
    "sh -c 'git diff | head'",
    "find . -name x",
  ])("the line %j runs", (spelled) => {
    expect(decisionOf(spelled, ...RULES)).toBe("allow");
  });

  test.each([
    "git diff > f",
    "{ git diff; } > f",
    "git diff --output=f",
    "git diff --outp f",
    "git diff --no-index /etc/passwd /dev/null",
    "git diff --no-ind a b",
    "git diff /etc/passwd /dev/null",
    "git diff ../../x a",
    "git diff ~/x y",
    "git diff $X",
    "git -c core.pager=x diff",
    "GIT_EXTERNAL_DIFF=./x git diff",
    "PATH=.; git diff",
    "./git diff",
    "git difftool",
    "npm test x",
    "npm test; ls",
    "git diff $(ls)",
    "git diff `ls`",
    "git diff <(ls)",
    "$X diff",
    "g?t diff",
    "git() { ls; }; git diff",
    "alias git=ls\ngit diff",
    "eval 'git diff'",
    'sh -c "$X"',
    "sh x",
    "X=1 sh -c 'git diff'",
    "ssh host git diff",
    "node -e 1",
    "echo 1 | node",
    "xargs git diff",
    "find . -exec git diff \\;",
    "find . -delete",
    "git diff '",
    "[[ x ]] && git diff",
  ])("the line %j asks", (spelled) => {
    expect(decisionOf(spelled, ...RULES)).toBe("ask");
  });

  test("a pattern that names the option covers it", () => {
    expect(decisionOf("git diff --no-index a b", rule("allow", "git diff --no-index:*"))).toBe("allow");
  });
});
