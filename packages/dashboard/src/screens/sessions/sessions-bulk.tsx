// Pauses, cancels or raises several sessions at once.
//
// Sessions are changed one by one. A session that could not be changed stays selected, with the reason.

import { useRef, useState, type RefObject } from "react";
import { call, toError } from "../../api/client.ts";
import { isEnded, type Session } from "../../api/types.ts";
import { Button } from "../../parts/parts.tsx";
import { RaiseBudget, type RaisedBudget } from "../../parts/raise-budget.tsx";
import { shown } from "../../parts/text.ts";
import { sessionPath } from "../../parts/use-session.ts";

export function BulkActions(props: {
  readonly sessions: readonly Session[];
  /** Called with the sessions that could not be changed. */
  readonly onDone: (left: readonly Session[]) => void;
}) {
  const { sessions, onDone } = props;
  const { changeEach, isBusy, failures } = useBulkChange(onDone);
  const sure = useRef<HTMLDialogElement>(null);
  const raise = useRef<HTMLDialogElement>(null);
  if (sessions.length === 0) return null;
  const live = sessions.filter((session) => !isEnded(session));
  const paused = live.filter(({ status }) => status === "paused");
  const running = live.filter(({ status }) => status !== "paused" && status !== "cancelling");
  const ended = sessions.length - live.length;
  const post = (action: string, of: readonly Session[], body?: object): void =>
    void changeEach(of, ({ sessionId }) => call("POST", sessionPath(sessionId, action), body));
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
      <CancelDialog ref={sure} what={count(live.length)} onCancel={() => post("cancel", live, {})} />
      <RaiseDialog
        ref={raise}
        what={count(live.length)}
        isBusy={isBusy}
        onRaise={(budget) =>
          changeEach(live, ({ sessionId }) => call("PATCH", sessionPath(sessionId, "budget"), budget))
        }
      />
    </section>
  );
}

function useBulkChange(onDone: (left: readonly Session[]) => void) {
  const [failures, setFailures] = useState<readonly string[]>([]);
  const [isBusy, setBusy] = useState(false);
  /** @returns whether all were changed. */
  const changeEach = async (
    sessions: readonly Session[],
    change: (session: Session) => Promise<unknown>,
  ): Promise<boolean> => {
    setBusy(true);
    const left: Session[] = [];
    const failed: string[] = [];
    for (const session of sessions) {
      try {
        await change(session);
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
  return { changeEach, isBusy, failures };
}

const DIALOG = "m-auto max-w-lg rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-veil";

interface DialogProps {
  readonly ref: RefObject<HTMLDialogElement | null>;
  /** The number of sessions, as a text. */
  readonly what: string;
}

function CancelDialog({ ref, what, onCancel }: DialogProps & { readonly onCancel: () => void }) {
  return (
    <dialog ref={ref} aria-label="Cancel the selected sessions" className={DIALOG}>
      <p>Cancel {what} and everything below? Cancelled sessions cannot continue.</p>
      <div className="mt-4 flex gap-2">
        <Button
          kind="danger"
          onClick={() => {
            ref.current?.close();
            onCancel();
          }}
        >
          Cancel {what}
        </Button>
        <Button onClick={() => ref.current?.close()}>Keep</Button>
      </div>
    </dialog>
  );
}

function RaiseDialog({
  ref,
  what,
  isBusy,
  onRaise,
}: DialogProps & {
  readonly isBusy: boolean;
  readonly onRaise: (budget: RaisedBudget) => Promise<boolean>;
}) {
  return (
    <dialog ref={ref} aria-label="Raise the limits of the selected sessions" className={DIALOG}>
      <p className="mb-3">Each of {what} gets this limit.</p>
      <RaiseBudget
        session={{}}
        draft="limit of selected sessions"
        isBusy={isBusy}
        onRaise={(budget) => {
          ref.current?.close();
          return onRaise(budget);
        }}
      />
      <div className="mt-3">
        <Button onClick={() => ref.current?.close()}>Close</Button>
      </div>
    </dialog>
  );
}

function count(sessions: number): string {
  return sessions === 1 ? "one session" : `${sessions} sessions`;
}
