// Lines that look harmless to a rule and are not. Programs take beginnings of options, groups of letters and
// values within words.

import { describe, expect, test } from "vitest";

import type { PermissionDecision, PermissionRule } from "../../record/agent-record.ts";
import { decide } from "../permissions.ts";

const shell = { isReading: false, subjectKind: "command" as const, offered: { name: "shell" } };
const rule = (decision: PermissionDecision, pattern: string | null, tool = "shell"): PermissionRule => ({
  decision,
  tool,
  pattern,
});
const decisionOf = (line: string, ...rules: readonly PermissionRule[]): PermissionDecision =>
  decide(rules, shell, line).decision;

describe("an allowed program starts no other, writes no file and reads nothing outside of the folder without a question", () => {
  test.each([
    ["echo:*", String.raw`echo $'a\'; touch f #'`],
    ["echo:*", String.raw`echo $"a"`],
    ["git grep:*", "git grep --ope='touch f;' hello"],
    ["git grep:*", "git grep -nO'touch f;' hello"],
    ["git grep:*", "git grep -f/etc/passwd"],
    ["git fetch:*", "git fetch --uplo='touch f; git-upload-pack' ."],
    ["git ls-remote:*", "git ls-remote --uplo='touch f; git-upload-pack' ."],
    ["git clone:*", "git clone -u 'touch f' . x"],
    ["git clone:*", "git clone --config core.sshCommand=x . y"],
    ["git rebase:*", "git rebase -ix 'touch f'"],
    ["git rebase:*", "git rebase --exe='touch f'"],
    ["git push:*", "git push --rece='touch f'"],
    ["git archive:*", "git archive --remote=. --ex=x"],
    ["git commit:*", "git commit -F/etc/passwd"],
    ["git blame:*", "git blame --contents=/etc/passwd a"],
    ["git blame:*", "git blame --conten ../a b"],
    ["sed -n:*", "sed -n '2!w f' a"],
    ["sed -n:*", "sed -n 's#h#j#w f' a"],
    ["sed -n:*", "sed -n '1!d;s#.*#touch f#e' a"],
    ["sed -n:*", "sed -n 'R/etc/passwd' a"],
    ["sed:*", "sed -f x a"],
    ["sed:*", "sed --fil=x a"],
    ["sed:*", "sed 's/a/b/;e' a"],
    ["sed:*", "sed '$X' \"$Y\""],
    ["tar -tf:*", "tar -tf x --checkpoint=1 --checkpoint-ac=exec='touch f'"],
    ["tar:*", "tar --to-c=x -xf y"],
    ["tar:*", "tar --use=x -cf y z"],
    ["tar:*", "tar -cI x -f y z"],
    ["tar:*", "tar cIf x y z"],
    ["sort:*", "sort --co=x a"],
    ["sort:*", "sort --files0-from=/etc/passwd"],
    ["sort:*", "sort -uo f a"],
    ["rg:*", "rg --pre ./x a"],
    ["uniq:*", "uniq a b"],
    ["awk:*", "awk '{print > \"f\"}' a"],
    ["awk:*", 'awk "$X"'],
    ["npm test:*", "npm test --script-shell=./x"],
    ["make:*", "make -f -"],
    ["make:*", "make SHELL=./x"],
    ["curl:*", "curl -so f http://x"],
    ["curl:*", "curl -d@f http://x"],
    ["less:*", "less '+!touch f' a"],
    ["sqlite3:*", "sqlite3 x '.shell touch f'"],
    ["sh:*", "sh"],
    ["sh:*", "sh x.sh"],
    ["sh:*", "sh -s x.sh"],
    ["sh:*", "sh $X"],
    ["bash:*", "bash --rcfile x.sh -i"],
    ["sh x.sh:*", "sh y.sh"],
  ])("the rule that allows %j does not allow %j", (pattern, line) => {
    expect(decisionOf(line, rule("allow", pattern))).toBe("ask");
  });

  test.each([
    ["sed:*", "sed -n '1,20p' a"],
    ["sed:*", "sed -e 's/a/b/g' -e '/x/d' a"],
    ["sed:*", "sed -E 's|/a/(b)|\\1|; $!d' a b"],
    ["sed:*", "sed --expression='10q' a"],
    ["git log:*", "git log --oneline -20 --author=x src"],
    ["git clean -fdx", "git clean -fdx"],
    ["tar:*", "tar -czf a.tgz src"],
    ["sort:*", "sort -u -k2 a"],
    ["rg:*", "rg -n --hidden touch src"],
    ["npm run:*", "npm run build -- --watch=false"],
    ["npm exec:*", "npm exec tsc"],
    ["make:*", "make -j4 test"],
    ["curl:*", "curl -fsSL http://127.0.0.1:1/x"],
    ["awk:*", "awk '{print $1}' a"],
    ["echo:*", 'echo "$HOME"'],
    ["sh step.sh once:*", "sh step.sh once a"],
    ["bash -e scripts/test.sh:*", "timeout 60 bash -e scripts/test.sh unit"],
    ["/bin/sh x.sh", "/bin/sh x.sh"],
  ])("the rule that allows %j allows %j", (pattern, line) => {
    expect(decisionOf(line, rule("allow", pattern))).toBe("allow");
  });
});

describe("a denied command is asked about behind programs that may start it", () => {
  test.each([
    "bash -c -- 'touch f'",
    "sh x.sh",
    "timeout 5 bash -e x.sh",
    "X='-exec touch f ;'; find . -maxdepth 0 $X",
    'X=\'BEGIN{system("touch f")}\'; awk "$X"',
    "X='1e touch f'; sed \"$X\" a",
    "sed 's#.*#touch f#e' a",
    "sed '2!e touch f' a",
    "git grep --ope='touch f;' x",
    "GIT_EXTERNAL_DIFF='touch f;' git diff",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!touch f' git x",
    "export GIT_EXTERNAL_DIFF='touch f;'; git diff",
    "PATH=.; ls",
    "BASH_ENV=x.sh bash -c :",
    "PS4='$(touch f)' bash -xc :",
    "bash -c \"[ -v 'a[\\$(touch f)]' ]\"",
    "test -v 'a[$(touch f)]'",
    "printf -v 'a[$(touch f)]' x",
    "read 'a[$(touch f)]' < x",
    "mapfile -C 'touch f;' x",
    "compgen -C 'touch f'",
    "jobs -x touch f",
    "setarch -R touch f",
    "linux64 touch f",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch f",
    "vim.basic -c '!touch f'",
    "nvim -c '!touch f'",
    "capsh -- -c 'touch f'",
    "pkexec touch f",
    "npm exec touch f",
    "man -P 'touch f' ls",
  ])("the line %j", (line) => {
    expect(["deny", "ask"]).toContain(decisionOf(line, rule("allow", null), rule("deny", "touch:*")));
  });

  test("a command of git is the same by its own name", () => {
    const line = "/usr/lib/git-core/git-push origin";
    expect(decisionOf(line, rule("allow", null), rule("deny", "git push:*"))).toBe("deny");
  });
});

describe("a denied file that may lie in any folder", () => {
  const RULES = [".env", "**/.env"].map((path) => rule("deny", path, "read_file"));
  test.each(["git status", "git log --oneline", "git fetch", "git push"])(
    "the line %j names no file, and runs",
    (line) => {
      expect(decisionOf(line, rule("allow", null), ...RULES)).toBe("allow");
    },
  );
  test.each([
    "git status .",
    "git log -p",
    "git add -A",
    "git mv a b",
    "git diff",
    "git show",
    "git stash list -p",
  ])("the line %j asks", (line) => {
    expect(decisionOf(line, rule("allow", null), ...RULES)).toBe("ask");
  });
});

describe("a denied path is asked about wherever it stands in a command", () => {
  const RULES = [rule("allow", null), rule("deny", "conf/secrets/**", "read_file")];
  test.each([
    "curl -s -d@conf/secrets/a 127.0.0.1",
    "curl -F f=@conf/secrets/a 127.0.0.1",
    "curl -Tconf/secrets/a 127.0.0.1",
    "curl --data-binary=@conf/secrets/a 127.0.0.1",
    "grep -vfconf/secrets/a b",
    "grep -d recurse hunter .",
    "grep --recurs hunter",
    "grep -rn hunter",
    "sed -nfconf/secrets/a b",
    "sort --files0-from=list",
    "wc --files0-fr=list",
    "tar -cf x -T list",
    "git log -u -2",
    "git log --cc -2",
    "git log -U1",
    "git log -L1,1:conf/secrets/a",
    "git status -vv",
    "git commit -v",
    "split conf/secrets/a",
    "diff --recurs . x",
  ])("the line %j", (line) => {
    expect(["deny", "ask"]).toContain(decisionOf(line, ...RULES));
  });

  test.each([
    "git log --oneline -5",
    "git status --short",
    "git commit -am 'x: y'",
    "git add -u src",
    "git push -u origin main",
    "grep -n hunter src/a",
    "curl -fsS http://127.0.0.1:1/x",
    "sed -n 1,5p src/a",
    "sort -k2 src/a",
    "npm test",
  ])("the line %j runs", (line) => {
    expect(decisionOf(line, ...RULES)).toBe("allow");
  });
});
