// Pauses, cancels or raises several sessions at once.
//
//   sessions-bulk-1. Sessions are changed one by one. A session that could not be changed stays selected, with the reason.

import { useRef, useState } from "react";
import { call, toError } from "../api/client.ts";
import { isEnded, type Session } from "../api/types.ts";
import { Button } from "../parts/parts.tsx";
import { RaiseBudget } from "../parts/raise-budget.tsx";
import { shown } from "../parts/text.ts";
import { sessionPath } from "../parts/use-session.ts";

type Work = (session: Session) => Promise<unknown>;

export function BulkActions(props: {
  readonly sessions: readonly Session[];
  /** Called with the sessions that could not be changed. */
  readonly onDone: (left: readonly Session[]) => void;
}) {
  const { sessions, onDone } = props;
  const [failures, setFailures] = useState<readonly string[]>([]);
  const [isBusy, setBusy] = useState(false);
  const sure = useRef<HTMLDialogElement>(null);
  const raise = useRef<HTMLDialogElement>(null);
  if (sessions.length === 0) return null;
  const live = sessions.filter((session) => !isEnded(session));
  /** @returns whether all were changed. */
  const each = async (of: readonly Session[], work: Work): Promise<boolean> => {
    setBusy(true);
    const left: Session[] = [];
    const failed: string[] = [];
    for (const session of of) {
      try {
        await work(session);
      } catch (error) {
        left.push(session);
        failed.push(`${session.agent} ${session.sessionId}: ${toError(error).message}`);
      }
    }
    setBusy(false);
    setFailures(failed);
    onDone(left);
    return left.length === 0;
  };
  const post = (action: string, of: readonly Session[], body?: object): void =>
    void each(of, ({ sessionId }) => call("POST", sessionPath(sessionId, action), body));
  const paused = live.filter(({ status }) => status === "paused");
  const running = live.filter(({ status }) => status !== "paused" && status !== "cancelling");
  const ended = sessions.length - live.length;
  return (
    <section
      aria-label="Selected sessions"
      className="flex flex-wrap items-center gap-2 border-b border-line bg-panel px-3 py-2"
    >
      <span className="font-medium">
        {sessions.length} selected{ended === 0 ? "" : `, ${ended} of them ended`}
      </span>
      <Button isDisabled={isBusy || running.length === 0} onClick={() => post("pause", running)}>
        Pause
      </Button>
      <Button isDisabled={isBusy || paused.length === 0} onClick={() => post("unpause", paused)}>
        Unpause
      </Button>
      <Button isDisabled={isBusy || live.length === 0} onClick={() => raise.current?.showModal()}>
        Raise…
      </Button>
      <Button
        kind="danger"
        isDisabled={isBusy || live.length === 0}
        onClick={() => sure.current?.showModal()}
      >
        Cancel…
      </Button>
      <Button isDisabled={isBusy} onClick={() => onDone([])}>
        Select none
      </Button>
      {failures.map((failure) => (
        <p key={failure} role="alert" className="basis-full text-bad">
          {shown(failure)}
        </p>
      ))}
      <dialog ref={sure} aria-label="Cancel the selected sessions" className={DIALOG}>
        <p>Cancel {count(live.length)} and everything below? Cancelled sessions cannot continue.</p>
        <div className="mt-4 flex gap-2">
          <Button
            kind="danger"
            onClick={() => {
              sure.current?.close();
              post("cancel", live, {});
            }}
          >
            Cancel {count(live.length)}
          </Button>
          <Button onClick={() => sure.current?.close()}>Keep</Button>
        </div>
      </dialog>
      <dialog ref={raise} aria-label="Raise the limits of the selected sessions" className={DIALOG}>
        <p className="mb-3">Each of {count(live.length)} gets this limit.</p>
        <RaiseBudget
          session={{}}
          draft="limit of selected sessions"
          isBusy={isBusy}
          onRaise={(budget) => {
            raise.current?.close();
            return each(live, ({ sessionId }) => call("PATCH", sessionPath(sessionId, "budget"), budget));
          }}
        />
        <div className="mt-3">
          <Button onClick={() => raise.current?.close()}>Close</Button>
        </div>
      </dialog>
    </section>
  );
}

const DIALOG = "m-auto max-w-lg rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-black/40";

function count(sessions: number): string {
  return sessions === 1 ? "one session" : `${sessions} sessions`;
}
