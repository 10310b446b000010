// Small parts that all screens share.

import { useEffect, useRef, useState, type ReactNode } from "react";
import type { PlainError } from "@holdfast/proto/view";
import { ApiError, NoAnswerError, toError } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { isMissingFile } from "../api/missing-file.ts";
import { shown, statusText } from "./text.ts";
import { useAbout } from "./use-session.ts";

const COLOURS: Readonly<Record<Session["status"], string>> = {
  submitted: "text-busy",
  working: "text-busy",
  waiting: "text-soft",
  input_required: "text-warn",
  paused: "text-bad",
  cancelling: "text-warn",
  completed: "text-good",
  failed: "text-bad",
  cancelled: "text-soft",
};

const MARKS: Readonly<Record<Session["status"], string>> = {
  submitted: "○",
  working: "●",
  waiting: "◌",
  input_required: "?",
  paused: "❚❚",
  cancelling: "◍",
  completed: "✓",
  failed: "✕",
  cancelled: "–",
};

export function StatusMark({ session }: { readonly session: Pick<Session, "status" | "pauseReason"> }) {
  const { status } = session;
  return (
    <span
      className={`inline-flex max-w-full items-center gap-1.5 align-bottom font-medium ${COLOURS[status]}`}
    >
      <span aria-hidden className={`w-4 text-center text-xs ${status === "working" ? "pulse" : ""}`}>
        {MARKS[status]}
      </span>
      <span className="truncate">{statusText(session)}</span>
    </span>
  );
}

/** A time that goes on: rendered again every few seconds. */
export function useNow(everyMs = 5_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** The ids that a person has selected, and a call that selects one or no longer selects it. */
export function useChecked() {
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const check = (id: string | undefined): void => {
    if (id === undefined) return;
    const next = new Set(checked);
    if (!next.delete(id)) next.add(id);
    setChecked(next);
  };
  return { checked, check, setChecked };
}

type ButtonKind = "plain" | "main" | "danger";

const BUTTONS: Readonly<Record<ButtonKind, string>> = {
  plain: "border border-line bg-panel hover:bg-raised",
  main: "bg-accent text-on-accent hover:opacity-90",
  danger: "border border-bad text-bad bg-panel hover:bg-raised",
};

/** A button that takes no press keeps the focus, and a held Enter presses once. */
export function Button(props: {
  readonly onClick?: () => void;
  readonly kind?: ButtonKind;
  readonly isDisabled?: boolean;
  readonly hint?: string;
  readonly type?: "button" | "submit";
  readonly children: ReactNode;
}) {
  const { onClick, kind = "plain", isDisabled = false, hint, type = "button", children } = props;
  return (
    <button
      type={type}
      aria-disabled={isDisabled}
      onClick={(event) => (isDisabled ? event.preventDefault() : onClick?.())}
      onKeyDown={(event) => event.repeat && event.preventDefault()}
      className={`min-h-8 rounded-md px-3 py-1 text-sm font-medium aria-disabled:opacity-60 ${BUTTONS[kind]}`}
    >
      {children}
      {hint === undefined ? null : (
        <kbd className="ml-2 hidden font-mono text-xs opacity-80 sm:inline">{hint}</kbd>
      )}
    </button>
  );
}

/** An error with its fix. */
export function Problem({ error }: { readonly error: unknown }) {
  const [title, advice] = isMissingFile(error)
    ? ["A file of this screen cannot be loaded", MISSING_FILE]
    : [shown(toError(error).message), adviceOf(error)];
  return (
    <div role="alert" className="rounded-md border border-bad bg-panel p-3 text-sm">
      <p className="font-medium text-bad">{title}</p>
      {advice === undefined ? null : <p className="text-soft">{shown(advice)}</p>}
    </div>
  );
}

const MISSING_FILE =
  "The page loads again as soon as the server answers. If that does not help, the server has another version of the page: reload it, or restart the server.";

function adviceOf(error: unknown): string | undefined {
  if (error instanceof ApiError) return error.fix;
  if (!(error instanceof NoAnswerError)) return undefined;
  return error.isRead
    ? "The page tries again until it does."
    : "It may be done all the same. Press again once the server answers: it counts once.";
}

/** An error of an agent as it was recorded, with what would mend it. */
export function RecordedErrorView({ error }: { readonly error: PlainError }) {
  const { name, message, at, got, expected, fix, cause } = error;
  const details = Object.entries({ at, got, expected, fix });
  return (
    <div className="space-y-1">
      <p className="exact font-semibold text-bad">
        {shown(name === "Error" ? message : `${name}: ${message}`)}
      </p>
      <dl className="grid grid-cols-[auto_1fr] gap-x-3">
        {details.map(([label, text]) =>
          text === undefined ? null : (
            <div key={label} className="contents">
              <dt className="text-soft">{label}</dt>
              <dd className="exact">{shown(text)}</dd>
            </div>
          ),
        )}
      </dl>
      {cause === undefined ? null : (
        <details>
          <summary className="text-soft">because of</summary>
          <div className="pl-3">
            <RecordedErrorView error={cause} />
          </div>
        </details>
      )}
    </div>
  );
}

/** A screen without content says what would be there and how it comes. */
export function Empty({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="mx-auto max-w-lg p-8 text-center">
      <h2 className="text-base font-semibold">{title}</h2>
      <div className="mt-2 text-soft">{children}</div>
    </div>
  );
}

/** A part of the page that scrolls, also by keyboard, with the name of the screen as its heading. */
export function ScreenBody(props: { readonly title: string; readonly children: ReactNode }) {
  const { title, children } = props;
  return (
    <div className="h-full overflow-auto" tabIndex={0} role="region" aria-label={title}>
      <h1 className="sr-only">{title}</h1>
      <div className="mx-auto max-w-5xl space-y-4 p-3">{children}</div>
    </div>
  );
}

/** A long text inside of a card. It scrolls, also by keyboard. */
export function ScrollBox({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div
      role="region"
      aria-label={label}
      tabIndex={0}
      className="mt-1 max-h-96 overflow-auto rounded-md bg-raised p-3"
    >
      {children}
    </div>
  );
}

/** A button that asks once more, and then does what cannot be undone. */
export function SureButton(props: {
  readonly name: string;
  readonly sure: ReactNode;
  readonly isDisabled?: boolean;
  readonly onSure: () => void;
}) {
  const { name, sure, isDisabled = false, onSure } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <Button kind="danger" isDisabled={isDisabled} onClick={() => dialog.current?.showModal()}>
        {name}…
      </Button>
      <dialog
        ref={dialog}
        aria-label={name}
        className="m-auto max-w-lg rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-black/40"
      >
        {sure}
        <div className="mt-4 flex gap-2">
          <Button
            kind="danger"
            onClick={() => {
              dialog.current?.close();
              onSure();
            }}
          >
            {name}
          </Button>
          <Button onClick={() => dialog.current?.close()}>Keep</Button>
        </div>
      </dialog>
    </>
  );
}

export function Command({ children }: { readonly children: string }) {
  return <code className="exact rounded bg-raised px-1.5 py-0.5">{children}</code>;
}

/** The thing that a session still needs after a person's change. `holdfast ui` runs no session. */
export function ContinuesBy({ sessionId }: { readonly sessionId: string }) {
  const isLocal = useAbout()?.isLocal ?? false;
  return isLocal ? (
    <>
      If no process runs it, continue it with <Command>{`holdfast resume ${sessionId}`}</Command>
    </>
  ) : (
    "A matching runner continues it."
  );
}
