// `holdfast script list`, `show` and `history`.

import {
  commandPath,
  contentOfVersion,
  findScripts,
  otherCommand,
  parametersOf,
  unmetDemands,
  usageOf,
  type Script,
} from "@holdfast/agents";
import { didYouMean, NotFoundError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { count, cutTo, plain, plainLine, table } from "@holdfast/terminal/frame/plain-text";
import { agentPlaces, shownPath } from "../agents/agent-places.ts";
import { HASH_CHARS, showVersionsOf } from "./content-versions.ts";

export function listScripts(io: Io): number {
  const scripts = findScripts(agentPlaces(io));
  const rows = scripts.map((script) => [
    plainLine(script.name, 48),
    script.status,
    script.current?.slice(0, HASH_CHARS) ?? "-",
    shownPath(script.path, io),
    plainLine(
      script.problem ?? noteOf(script) ?? nameNote(script.name, io) ?? script.manifest?.description ?? "",
      80,
    ),
  ]);
  const lines = table([["NAME", "STATUS", "VERSION", "FOLDER", ""], ...rows]);
  io.show(
    scripts.map(({ versions: _versions, tags: _tags, ...script }) => script),
    rows.length === 0
      ? `no scripts: \`${io.call("script new NAME")}\` writes one`
      : lines.map((line) => cutTo(line, io.results.columns, io.results.symbols.cut)).join("\n"),
  );
  const unpushed = scripts.filter(({ status }) => status === "unpushed").length;
  if (unpushed > 0)
    io.note(
      `${io.notes.symbols.warn} agents cannot use ${count(unpushed, "script")} yet: read it, and then run \`${io.call("script push")}\``,
    );
  return 0;
}

/** Whether the folder has another content than the version that agents use. */
export function noteOf({ status, current, folderHash }: Script): string | undefined {
  return status === "loaded" && current !== folderHash
    ? "the folder has another content than this version; push it to use it"
    : undefined;
}

/** Whether another command of this machine has the name of a script. */
function nameNote(name: string, { env }: Io): string | undefined {
  const other = otherCommand(name, env["PATH"]);
  return other === undefined
    ? undefined
    : `a shell runs ${other} by this name; agents call the script by ${commandPath(name)}`;
}

export function noteName(name: string, io: Io): void {
  const note = nameNote(name, io);
  if (note !== undefined)
    io.note(`${io.notes.symbols.warn} ${name}: ${note}; another name lets both be called`);
}

export function showScript(name: string, io: Io): number {
  const places = agentPlaces(io);
  const script = pickScript(name, findScripts(places));
  const { manifest, status, current, path, problem, versions: _versions, tags: _tags, ...rest } = script;
  const content = current === null ? undefined : contentOfVersion(current, places);
  const files = content?.files.map((file) => file.path) ?? [];
  const text = content?.files.find((file) => file.path === manifest?.file)?.bytes.toString("utf8") ?? "";
  const usage = manifest === null ? "" : usageOf(name, parametersOf(manifest.parameters));
  const fields =
    manifest === null
      ? []
      : [
          ["description", manifest.description],
          ["version", current ?? "none"],
          ["effect", manifest.effect],
          ["limits", `${manifest.timeoutMs} ms, ${manifest.outputBytes} bytes of output`],
          ["demands", unmetDemands(manifest.demands, {}).join(", ") || "none"],
          ["runs with", manifest.interpreter.join(" ")],
          ...(files.length === 0 ? [] : [["files", files.join(", ")]]),
        ];
  const note = problem ?? noteOf(script) ?? nameNote(name, io);
  io.show(
    { ...rest, status, current, path, problem, manifest, files, usage },
    [
      `${io.results.paint.bold(shownPath(path, io))}: ${plainLine(name, 48)} (script), ${status}`,
      ...(note === undefined || note === null ? [] : [`  ${plain(note)}`]),
      ...table(fields.map(([field = "", value = ""]) => [`  ${field}`, plain(value)])),
      ...(usage === "" ? [] : ["", plain(usage)]),
      ...(text === "" ? [] : ["", plain(text).trimEnd()]),
    ].join("\n"),
  );
  return status === "refused" ? 3 : 0;
}

export function showVersions(name: string, io: Io): number {
  const script = pickScript(name, findScripts(agentPlaces(io)));
  return showVersionsOf(name, script, { column: "PUSHED", makes: `script push ${name}` }, io);
}

/** The script of this name that is used, or else the first one. */
export function pickScript(name: string, scripts: readonly Script[]): Script {
  const named = scripts.filter((script) => script.name === name);
  const found = named.find(({ status }) => status === "loaded") ?? named[0];
  if (found !== undefined) return found;
  const names = [...new Set(scripts.map((script) => script.name))];
  throw new NotFoundError(
    "file_not_found",
    `there is no script ${plainLine(name, 64)}${didYouMean(name, names)}`,
    {
      expected: names.length === 0 ? "a folder with script.json in .holdfast/scripts" : names.join(", "),
      fix: "run `holdfast script list` to see all scripts",
    },
  );
}
