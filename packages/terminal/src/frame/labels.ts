// NAME=VALUE, as labels and demands are given, and the tags by which a list is filtered (`wantedTags`).

import { hostname } from "node:os";
import { defined, UsageError } from "@holdfast/core";
import type { Arguments } from "./command.ts";
import { plainLine } from "./plain-text.ts";

/** All that an option gives. @throws UsageError for what is no label. */
export function readLabels(args: Arguments, option: "label" | "demand"): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const text of args.texts(option)) {
    const at = text.indexOf("=");
    if (at < 1)
      throw new UsageError(`"${text}" is no label`, {
        at: `--${option}`,
        expected: "NAME=VALUE, such as gpu=yes",
      });
    labels[text.slice(0, at)] = text.slice(at + 1);
  }
  return labels;
}

/** The labels of a runner with those that each runner has, and with the folder that folders of agents may demand. */
export function allLabels(
  labels: Readonly<Record<string, string>>,
  project: string,
  name: string | undefined,
): Readonly<Record<string, string>> {
  const always = { hostname: hostname(), machine: hostname(), project_dir: project };
  return { ...always, ...defined({ runner: name }), ...labels };
}

const TAGS_CHARS = 80;

/** The tags of `--tag a,b`. */
export function wantedTags(args: Pick<Arguments, "text">): readonly string[] {
  return (args.text("tag") ?? "").split(",").filter((tag) => tag !== "");
}

/** @param known the tags of each agent of the place. @returns nothing for a list that has no tags as its filter. */
export function noneTagged(
  wanted: readonly string[],
  known: readonly (readonly string[])[],
): string | undefined {
  if (wanted.length === 0) return undefined;
  const all = [...new Set(known.flat())].toSorted();
  return `no agent has the ${wanted.length === 1 ? "tag" : "tags"} ${plainLine(wanted.join(" and "), TAGS_CHARS)}; tags here: ${all.join(", ") || "none"}`;
}
