// The reasons for which a session does not use hooks, rules and skills of its project (`unusedHooks`,
// `unusedRules`, `unusedSkill`).

import type { HookFile, Skill } from "@holdfast/agents";

const UNTRUSTED = "you have not trusted this project; read it, and then run `holdfast agents trust`";

export function unusedHooks({ path, status }: HookFile): readonly { path: string; reason: string }[] {
  switch (status) {
    case "loaded":
    case "refused":
      return [];
    case "untrusted":
      return [{ path, reason: UNTRUSTED }];
    case "unapproved":
      return [
        {
          path,
          reason:
            "its hooks have changed since you trusted this project; read it, and then run `holdfast agents trust`",
        },
      ];
  }
}

/** @param path a file whose rules that allow calls have changed since the user trusted them. */
export function unusedRules(path: string): { path: string; reason: string } {
  const reason =
    "it has changed since you trusted this project; read it, and then run `holdfast agents trust`";
  return { path: `what ${path} allows`, reason };
}

export function unusedSkill({ path, name, status }: Skill): readonly { path: string; reason: string }[] {
  switch (status) {
    case "loaded":
    case "hidden":
    case "inactive":
    case "denied":
      return [];
    case "refused":
      return [{ path, reason: `run \`holdfast skill show ${name}\` to see why it is refused` }];
    case "untrusted":
      return [{ path, reason: UNTRUSTED }];
    case "unapproved":
      return [
        {
          path,
          reason: `you have not approved its content; read it, and then run \`holdfast skill approve ${name}\``,
        },
      ];
  }
}
