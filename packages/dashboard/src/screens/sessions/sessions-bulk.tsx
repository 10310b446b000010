// Pauses, cancels or raises several sessions at once.
//
// Sessions are changed one by one. A session that could not be changed stays selected, with the reason.

import { useRef, useState, type ReactNode, type RefObject } from "react";
import { call, toError } from "../../api/client.ts";
import { isEnded, type Session } from "../../api/types.ts";
import { Dialog } from "../../design/surfaces.tsx";
import { Button } from "../../parts/parts.tsx";
import { RaiseBudget, type RaisedBudget } from "../../parts/raise-budget.tsx";
import { shown } from "../../parts/text.ts";
import { sessionPath } from "../../parts/use-session.ts";

export function BulkActions(props: {
  readonly sessions: readonly Session[];
  /** Called with the sessions that could not be changed. */
  readonly onDone: (left: readonly Session[]) => void;
  /** The choice of more sessions. */
  readonly children: ReactNode;
}) {
  const { sessions, onDone, children } = props;
  const { changeEach, isBusy, changed, failures } = useBulkChange(onDone);
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
      className="flex flex-wrap items-center gap-2 border-b border-line bg-panel px-4 py-2 md:px-6"
    >
      <span className="font-medium">
        {sessions.length.toLocaleString()} selected
        {ended === 0 ? "" : `, ${ended.toLocaleString()} of them ended`}
      </span>
      {isBusy ? <output className="text-soft">{changed.toLocaleString()} changed…</output> : null}
      {children}
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

const FAILURES_SHOWN = 5;

function useBulkChange(onDone: (left: readonly Session[]) => void) {
  const [failures, setFailures] = useState<readonly string[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [changed, setChanged] = useState(0);
  /** @returns whether all were changed. */
  const changeEach = async (
    sessions: readonly Session[],
    change: (session: Session) => Promise<unknown>,
  ): Promise<boolean> => {
    setBusy(true);
    setChanged(0);
    const left: Session[] = [];
    const failed: string[] = [];
    for (const [at, session] of sessions.entries()) {
      setChanged(at);
      try {
        await change(session);
      } catch (error) {
        left.push(session);
        failed.push(`${session.agent} ${session.sessionId}: ${toError(error).message}`);
      }
    }
    setBusy(false);
    setFailures(failed.slice(0, FAILURES_SHOWN));
    onDone(left);
    return left.length === 0;
  };
  return { changeEach, isBusy, changed, failures };
}

interface DialogProps {
  readonly ref: RefObject<HTMLDialogElement | null>;
  /** The number of sessions, as a text. */
  readonly what: string;
}

function CancelDialog({ ref, what, onCancel }: DialogProps & { readonly onCancel: () => void }) {
  return (
    <Dialog ref={ref} title="Cancel the selected sessions">
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
    </Dialog>
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
    <Dialog ref={ref} title="Raise the limits of the selected sessions">
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
    </Dialog>
  );
}

function count(sessions: number): string {
  return sessions === 1 ? "one session" : `${sessions.toLocaleString()} sessions`;
}
