// The cause for which a session failed or is paused: its text, its code and its advice. A person can try again
// from the last commit, or fork from another place.
//
//   - A press makes one session, however often its answer is lost: the page chooses the id of the fork.

import { useNavigate } from "@tanstack/react-router";
import { viewCause, type JournalRow, type PlainError } from "@holdfast/proto/view";
import { useRef } from "react";
import { ApiError, call } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { Button, Problem, RecordedErrorView } from "../parts/parts.tsx";
import { shown } from "../parts/text.ts";
import { sessionPath, useRequest, useRequestKey } from "../parts/use-session.ts";
import { ForkDialog } from "./journal/fork-dialog.tsx";

export function Cause({ error, isFault }: { readonly error: PlainError; readonly isFault: boolean }) {
  const { words, code, advice, around } = viewCause(error);
  return (
    <section
      aria-label="Cause"
      className={`rounded-md border bg-panel px-3 py-2 ${isFault ? "border-bad" : "border-line"}`}
    >
      <p className={`exact font-semibold ${isFault ? "text-bad" : "text-text"}`}>{shown(words)}</p>
      {code === undefined && advice === undefined ? null : (
        <p className="flex flex-wrap items-baseline gap-x-3">
          {code === undefined ? null : (
            <span className="rounded-md bg-raised px-1.5 font-mono text-sm text-soft">{shown(code)}</span>
          )}
          {advice === undefined ? null : <span className="min-w-0 wrap-anywhere">{shown(advice)}</span>}
        </p>
      )}
      {around.length === 0 && error.at === undefined ? null : (
        <details className="text-sm">
          <summary className="truncate text-soft">
            {around.length === 0 ? "all of the error" : `led to: ${shown(around[0]!.slice(0, AROUND_CHARS))}`}
          </summary>
          <div className="pt-1">
            <RecordedErrorView error={error} />
          </div>
        </details>
      )}
    </section>
  );
}

const AROUND_CHARS = 300;

/** Starts the work again that has failed. The failed session stays as it is. */
export function Retry({
  session,
  rows,
}: {
  readonly session: Session;
  readonly rows: readonly JournalRow[];
}) {
  const { sessionId } = session;
  const { run, isBusy, error } = useRequest();
  const { key, renew } = useRequestKey(sessionId);
  const fork = useRef<HTMLDialogElement>(null);
  const navigate = useNavigate();
  const open = (id: string): void => void navigate({ to: "/sessions/$id", params: { id } });
  if (session.persistence !== undefined && session.persistence !== "full") return null;
  const retry = (): Promise<boolean> =>
    run(async () => {
      const newSessionId = `ses_${key}`;
      await call<Session>("POST", sessionPath(sessionId, "fork"), { tasks: "rerun", newSessionId }).catch(
        (thrown: unknown) => {
          if (!(thrown instanceof ApiError && thrown.code === "session_exists")) throw thrown;
        },
      );
      renew();
      open(newSessionId);
    });
  return (
    <>
      <Button kind="main" isDisabled={isBusy} onClick={() => void retry()}>
        Retry from the last commit
      </Button>
      <Button isDisabled={rows.length === 0} onClick={() => fork.current?.showModal()}>
        Fork…
      </Button>
      {error === undefined ? null : <Problem error={error} />}
      {rows.length === 0 ? null : (
        <ForkDialog ref={fork} session={session} rows={rows} at={rows.length - 1} onForked={open} />
      )}
    </>
  );
}
