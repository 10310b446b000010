// The worktree of one session: the difference to the commit it began with, its commits, and what is nowhere
// else.

import { useQuery } from "@tanstack/react-query";
import { parseDiff, workText } from "@holdfast/proto/view";
import { useMemo, useState } from "react";
import { Link } from "@tanstack/react-router";
import { call } from "../../api/client.ts";
import { isEnded, type Session, type SessionWork, type WorktreeWork } from "../../api/types.ts";
import { useRunnerName } from "../../api/use-runners.ts";
import { Button, Command, Empty, Problem, useNow } from "../../parts/parts.tsx";
import { ago, brief, briefPath, dateText, shown } from "../../parts/text.ts";
import { useAbout, useOutbox } from "../../parts/use-session.ts";
import { signalFor } from "../conversation/steer.tsx";
import { DiffFiles } from "./diff-files.tsx";
import { MergeWork } from "./merge-work.tsx";

export default function Workspace({ session }: { readonly session: Session }) {
  const { sessionId } = session;
  const hasWorkspaces = useAbout()?.hasWorkspaces;
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ["workspace", sessionId],
    queryFn: () => call<SessionWork>("GET", `/ui/workspaces/${encodeURIComponent(sessionId)}`),
    enabled: hasWorkspaces === true,
  });
  if (hasWorkspaces === false) return <Elsewhere session={session} />;
  if (error !== null)
    return (
      <div className="space-y-2 p-3">
        <Problem error={error} />
        <Button isDisabled={isFetching} onClick={() => void refetch()}>
          Read again
        </Button>
      </div>
    );
  if (data === undefined) return <p className="p-3 text-soft">Reading the workspace…</p>;
  if (data.status === "none") return <NoWorktree session={session} />;
  return <Work work={data} session={session} isBusy={isFetching} onRead={() => void refetch()} />;
}

/** A token of a user reads no folder of a runner. */
function Elsewhere({ session: { sessionId, runnerId } }: { readonly session: Session }) {
  const runnerName = useRunnerName(runnerId, useAbout()?.kind === "admin");
  return (
    <Empty title="The folder of this session is on a runner's machine">
      <p>
        Only an admin of the coordinator sees the folders in which its runners work
        {runnerId === undefined ? "" : ` (this one is on ${brief(runnerName ?? runnerId, 80)})`}. In the
        project on that machine, these commands show the work and take it over:
      </p>
      <p className="mt-3 space-x-2">
        <Command>{`holdfast diff ${sessionId}`}</Command> <Command>{`holdfast merge ${sessionId}`}</Command>
      </p>
    </Empty>
  );
}

function NoWorktree({ session: { parentSessionId } }: { readonly session: Session }) {
  return (
    <Empty title="This session has no worktree of its own">
      <p>
        It works in the folder of the project, of another session, or in none. An agent file with{" "}
        <Command>workspace: worktree</Command> gives each of its sessions a git worktree. Its changes, its
        commits and everything that is nowhere else then appear here.
      </p>
      {parentSessionId === undefined ? null : (
        <p className="mt-3">
          <Link
            to="/sessions/$id"
            params={{ id: parentSessionId }}
            search={{ tab: "workspace" }}
            className="text-accent underline"
          >
            the workspace of its parent
          </Link>
        </p>
      )}
    </Empty>
  );
}

function Work(props: {
  readonly work: WorktreeWork;
  readonly session: Session;
  readonly isBusy: boolean;
  readonly onRead: () => void;
}) {
  const { work, session, isBusy, onRead } = props;
  const { changed, untracked, commits, diff, isDiffCut, revision } = work;
  const files = useMemo(() => parseDiff(diff), [diff]);
  const outbox = useOutbox(session.sessionId);
  const [hasCommented, setCommented] = useState(false);
  const { sessionId } = session;
  const onSend = (message: string): void => {
    outbox.send(message, signalFor(session));
    setCommented(true);
  };
  const isUsed = !isEnded(session) || (work.processes ?? []).length > 0;
  return (
    <div className="h-full space-y-5 overflow-auto p-3" tabIndex={0} role="region" aria-label="Workspace">
      <div className="space-y-1">
        <div className="flex flex-wrap items-center gap-3">
          <span className="font-semibold">{workText(work, isUsed)}</span>
          <Button isDisabled={isBusy} onClick={onRead}>
            Read again
          </Button>
          {revision == null ? (
            <span className="text-soft">
              Merge it on its machine: <Command>{`holdfast merge ${sessionId}`}</Command>
            </span>
          ) : (
            <MergeWork
              sessionId={session.sessionId}
              work={{ ...work, revision }}
              isUsed={isUsed}
              onMerged={onRead}
            />
          )}
        </div>
        <Facts work={work} />
      </div>
      <Commits commits={commits} />
      <Paths title="Not committed" paths={changed} />
      <Paths title="New files that git does not know" paths={untracked} />
      <section aria-label="Difference to the base" className="space-y-2">
        <h2 className="font-semibold">
          {files.length === 0
            ? "It has changed no file"
            : `${files.length} ${files.length === 1 ? "file differs" : "files differ"} from the base`}
        </h2>
        {isDiffCut ? <CutNote /> : null}
        <DiffFiles files={files} comments={isEnded(session) ? undefined : { sessionId, onSend }} />
        {hasCommented ? (
          <p role="status">
            The comment is sent to the agent.{" "}
            <Link
              to="/sessions/$id"
              params={{ id: session.sessionId }}
              search={{ tab: "conversation" }}
              className="text-accent underline"
            >
              See what becomes of it
            </Link>
          </p>
        ) : null}
      </section>
    </div>
  );
}

function Facts({ work: { branch, base, path, state, rescue } }: { readonly work: WorktreeWork }) {
  const facts = [
    ["branch", branch],
    ["began with", base.slice(0, 12)],
    ["folder", state === "removed" ? `${path} (removed)` : path],
    ["everything that was in it", rescue],
  ] as const;
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3 text-sm">
      {facts.map(([name, value]) =>
        value === null ? null : (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="exact">{shown(value)}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

function CutNote() {
  return (
    <p role="status" className="text-warn">
      The difference is too long for this page. Its last files are not shown, and the one before may be cut.
    </p>
  );
}

function Commits({ commits }: { readonly commits: WorktreeWork["commits"] }) {
  const now = useNow(60_000);
  if (commits.length === 0) return <p className="text-soft">It has made no commit.</p>;
  return (
    <section aria-label="Commits">
      <h2 className="font-semibold">
        {commits.length} {commits.length === 1 ? "commit" : "commits"}
      </h2>
      <ol>
        {commits.map(({ id, subject, author, at, isOnlyHere }) => (
          <li key={id} className="flex flex-wrap gap-x-3 border-b border-line/50 py-1">
            <span className="font-mono text-sm text-soft">{id.slice(0, 12)}</span>
            <span className="min-w-0 flex-1 basis-60">{brief(subject, 300)}</span>
            {isOnlyHere ? <span className="text-warn">nowhere else</span> : null}
            <span className="text-sm text-soft" title={dateText(at)}>
              {brief(author, 60)}, {ago(at, now)}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

const PATHS_MAX = 200;

function Paths({ title, paths }: { readonly title: string; readonly paths: readonly string[] }) {
  if (paths.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2 className="font-semibold">
        {title} ({paths.length})
      </h2>
      <ul className="exact text-warn">
        {paths.slice(0, PATHS_MAX).map((path) => (
          <li key={path}>{briefPath(path, 500)}</li>
        ))}
      </ul>
      {paths.length > PATHS_MAX ? <p className="text-soft">and {paths.length - PATHS_MAX} more</p> : null}
    </section>
  );
}
