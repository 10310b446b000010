// `reportOf`: the installation as a text for an issue that everybody can read.
//
//   - It has no path of this machine, no name of its user or its hosts, no id of a session and no secret.
//   - The database is described by numbers alone.

import { homedir, hostname, release, userInfo } from "node:os";
import { hideSecrets, isSecretField, VERSION } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { joined, type Check } from "./check.ts";
import type { Examination } from "./examination.ts";

/** A shorter value is no secret, and would be found in every second word. */
const SECRET_CHARS_MIN = 6;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** @param found the project's database, if the settings can be read. */
export function reportOf(checks: readonly Check[], found: Examination | undefined, io: Io): string {
  const clean = cleaner(io);
  const { versions, platform, arch } = process;
  const lines = [
    `holdfast ${VERSION}, Node ${versions.node}, SQLite ${versions.sqlite ?? "none"}, ${platform} ${arch} ${release()}`,
    ...checks.flatMap(({ subject, status, found: what, fix }) => [
      `${status.padEnd(7)} ${subject}: ${clean(joined(what))}`,
      ...(fix === undefined ? [] : [`        ${clean(joined(fix))}`]),
    ]),
    ...(found === undefined ? [] : databaseLines(found, clean)),
  ];
  return `\`\`\`text\n${lines.join("\n").replaceAll("```", "'''")}\n\`\`\``;
}

function databaseLines(found: Examination, clean: (text: string) => string): readonly string[] {
  const { database, rows, sessions, problems } = found;
  const numbers = (of: Readonly<Record<string, number>>): string =>
    Object.entries(of)
      .map(([name, n]) => `${name} ${n}`)
      .join(", ") || "none";
  const size = database.exists ? `${database.bytes ?? 0} bytes` : "does not exist";
  return [
    `database: ${size}; rows: ${numbers(rows)}; sessions: ${numbers(sessions)}`,
    ...problems.map((problem) => `problem database: ${clean(problem)}`),
  ];
}

/** Removes what names this machine, its user, or something that only they may know. */
function cleaner(io: Io): (text: string) => string {
  const { username } = userInfo();
  const secrets = Object.entries(io.env)
    .filter(([name, value = ""]) => isSecretField(name) && value.length >= SECRET_CHARS_MIN)
    .map(([, value = ""]) => [value, "[secret]"] as const);
  const places = [
    [io.cwd, "PROJECT"],
    [io.env["HOME"] ?? "", "~"],
    [homedir(), "~"],
  ] as const;
  const names = [
    [hostname(), "HOST"],
    [username, "USER"],
  ] as const;
  const whole = [...secrets, ...places.filter(([path]) => path.length > 1)].toSorted(
    ([one], [other]) => other.length - one.length,
  );
  return (text) => {
    let safe = text;
    for (const [value, mark] of whole) safe = safe.replaceAll(value, mark);
    safe = hideSecrets(safe)
      .replaceAll(/\b([a-z][a-z0-9+.-]*:\/\/)([^\s/"'`,;]+)/g, (_all, scheme: string, rest: string) => {
        const [, host = ""] = /^(?:.*@)?(\[[^\]]*\]|[^:]*)/.exec(rest) ?? [];
        return `${scheme}${LOOPBACK.test(host) ? rest.replace(/^.*@/, "") : "HOST"}`;
      })
      .replaceAll(/\b(ses|run|tsk|sig|rnr)_\w+/g, "$1_ID");
    for (const [name, mark] of names.filter(([one]) => one.length > 2 && one !== "root"))
      safe = safe.replaceAll(new RegExp(`(?<!\\w)${name.replaceAll(/\W/g, "\\$&")}(?!\\w)`, "g"), mark);
    return safe.replaceAll(/(?<![\w~])(\/[\w.@+-]+){2,}/g, "PATH");
  };
}
