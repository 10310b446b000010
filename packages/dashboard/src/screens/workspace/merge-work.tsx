// Merges the work of a session into the project, as `holdfast merge` does. A conflict is found before anything
// changes, and so is work that is not what this page shows.

import { useState } from "react";
import { call } from "../../api/client.ts";
import type { MergedWork, WorktreeWork } from "../../api/types.ts";
import { Command, Problem, SureButton } from "../../parts/parts.tsx";
import { count, shown } from "../../parts/text.ts";
import { useRequest } from "../../parts/use-session.ts";

export function MergeWork(props: {
  readonly sessionId: string;
  readonly work: WorktreeWork & { readonly revision: string };
  /** Whether the session or a program may change more. */
  readonly isUsed: boolean;
  readonly onMerged: () => void;
}) {
  const { sessionId, work, isUsed, onMerged } = props;
  const { branch, base, path: folder, changed, untracked, revision, tree, isDiffCut } = work;
  const { run, isBusy, error } = useRequest();
  const [merged, setMerged] = useState<MergedWork>();
  const open = changed.length + untracked.length;
  const merge = async (): Promise<void> => {
    const path = `/ui/workspaces/${encodeURIComponent(sessionId)}/merge`;
    const isDone = await run(async () =>
      setMerged(await call<MergedWork>("POST", path, { commit: open > 0, revision })),
    );
    if (isDone) onMerged();
  };
  return (
    <>
      <SureButton
        name="Merge into the project"
        kind="main"
        isDisabled={isBusy}
        onSure={() => void merge()}
        sure={
          <>
            <p>
              The branch <span className="font-mono">{shown(branch)}</span> is merged into the current branch
              of the project. A conflict is found before anything changes.
            </p>
            {open === 0 ? null : (
              <p className="mt-2">
                {count(open, "file is", "files are")} not committed, and will be committed first.
              </p>
            )}
            {isDiffCut ? (
              <p className="mt-2 text-warn">
                A part of the difference is not shown here. See all of it on its machine:{" "}
                <Command>{`git -C ${folder} diff ${base.slice(0, 12)} ${tree?.slice(0, 12)}`}</Command>
              </p>
            ) : null}
            {isUsed ? (
              <p className="mt-2 text-warn">The session has not ended, and may change more.</p>
            ) : null}
          </>
        }
      />
      {merged === undefined ? null : (
        <p role="status" className="basis-full text-good">
          {merged.isNew
            ? `${shown(merged.branch)} is merged into ${shown(merged.into)}.`
            : `${shown(merged.into)} has everything of ${shown(merged.branch)} already.`}
        </p>
      )}
      {error === undefined ? null : <Problem error={error} />}
    </>
  );
}
