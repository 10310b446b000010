// NAME=VALUE, as labels and demands are given.

import { UsageError } from "@holdfast/core";
import type { Arguments } from "./command.ts";

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
