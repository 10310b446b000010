// `CallWords`, `Subject`: one line for a call of a tool, with the word for its work, such as "Edit".

import type { CallView } from "@holdfast/proto/view";
import { brief, briefPath } from "../text.ts";

const SUBJECT_CHARS = 300;

export function CallWords({ call }: { readonly call: Pick<CallView, "verb" | "subject" | "isPath"> }) {
  return (
    <span className="flex min-w-0 items-baseline gap-1.5">
      <span className="max-w-full shrink-0 truncate font-semibold">{brief(call.verb, 60)}</span>{" "}
      <Subject {...call} />
    </span>
  );
}

/** In one line. Where a path is too long for it, its beginning is cut: its end has the name of the file. */
export function Subject(props: { readonly subject: string; readonly isPath?: boolean }) {
  const { subject, isPath = false } = props;
  return isPath ? (
    <span className="keep-end min-w-0 truncate font-mono text-sm">
      <bdi dir="ltr">{briefPath(subject, SUBJECT_CHARS)}</bdi>
    </span>
  ) : (
    <span className="min-w-0 truncate font-mono text-sm" dir="ltr">
      {brief(subject, SUBJECT_CHARS)}
    </span>
  );
}
