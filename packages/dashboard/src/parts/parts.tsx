// Small parts that all screens share.

import { useEffect, useRef, useState, type ReactNode } from "react";
import type { PlainError } from "@holdfast/proto/view";
import { ApiError, NoAnswerError, toError } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { isMissingFile } from "../api/missing-file.ts";
import { Icon, type IconName } from "../design/icons.tsx";
import { Banner, Dialog, ScreenHead, TONE_TEXT, type Tone } from "../design/surfaces.tsx";
import { shown, statusText } from "./text.ts";
import { useAbout } from "./use-session.ts";

/** How each status looks, on every screen. */
const STATUS_LOOKS: Readonly<Record<Session["status"], readonly [tone: Tone, icon: IconName]>> = {
  submitted: ["busy", "queued"],
  working: ["busy", "working"],
  waiting: ["plain", "waiting"],
  input_required: ["warn", "ask"],
  paused: ["bad", "pause"],
  cancelling: ["warn", "stopped"],
  completed: ["good", "done"],
  failed: ["bad", "cross"],
  cancelled: ["plain", "stopped"],
};

export function StatusMark({ session }: { readonly session: Pick<Session, "status" | "pauseReason"> }) {
  const { status } = session;
  const [tone, icon] = STATUS_LOOKS[status];
  return (
    <span
      className={`inline-flex max-w-full items-center gap-1.5 align-bottom font-medium ${TONE_TEXT[tone]}`}
    >
      <Icon name={icon} className={status === "working" ? "pulse" : ""} />
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

type ButtonKind = "plain" | "main" | "danger" | "quiet";

const BUTTONS: Readonly<Record<ButtonKind, string>> = {
  plain: "border border-edge bg-panel hover:bg-raised",
  main: "border border-accent bg-accent text-on-accent hover:opacity-90",
  danger: "border border-bad bg-panel text-bad hover:bg-bad-ground",
  quiet: "text-soft hover:bg-raised hover:text-text",
};

/** A button that takes no press keeps the focus, and a held Enter presses once. */
export function Button(props: {
  readonly onClick?: () => void;
  readonly kind?: ButtonKind;
  readonly isDisabled?: boolean;
  /** The key that presses it. */
  readonly hint?: string;
  readonly icon?: IconName;
  readonly type?: "button" | "submit";
  readonly children: ReactNode;
}) {
  const { onClick, kind = "plain", isDisabled = false, hint, icon, type = "button", children } = props;
  return (
    <button
      type={type}
      aria-disabled={isDisabled}
      onClick={(event) => (isDisabled ? event.preventDefault() : onClick?.())}
      onKeyDown={(event) => event.repeat && event.preventDefault()}
      className={`press inline-flex min-h-8 items-center justify-center gap-1.5 rounded-md px-3 py-1 text-sm font-medium aria-disabled:opacity-60 ${BUTTONS[kind]}`}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      <span>{children}</span>
      {hint === undefined ? null : (
        <kbd className="hidden font-mono text-xs opacity-80 sm:inline">{hint}</kbd>
      )}
    </button>
  );
}

/** An error with its fix. A person may close it; another error shows itself again. */
export function Problem({ error }: { readonly error: unknown }) {
  const [closed, setClosed] = useState<unknown>();
  if (closed === error && closed !== undefined) return null;
  const [title, advice] = isMissingFile(error)
    ? ["A file of this screen cannot be loaded", MISSING_FILE]
    : [shown(toError(error).message), adviceOf(error)];
  return (
    <Banner tone="bad" role="alert" icon="alert" onClose={() => setClosed(error)}>
      <p className="font-medium">{title}</p>
      {advice === undefined ? null : <p className="text-text">{shown(advice)}</p>}
    </Banner>
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
    <div className="mx-auto max-w-lg px-6 py-12 text-center">
      <h2 className="text-lg font-semibold">{title}</h2>
      <div className="mt-2 text-soft">{children}</div>
    </div>
  );
}

/** A part of the page that scrolls, also by keyboard, with the name of the screen as its heading. */
export function ScreenBody(props: {
  readonly title: string;
  /** A note beside the name. */
  readonly about?: ReactNode;
  /** Buttons that act on all of the screen. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const { title, about, actions, children } = props;
  return (
    <div className="h-full overflow-auto" tabIndex={0} role="region" aria-label={title}>
      <div className="mx-auto max-w-6xl space-y-4 p-4 md:px-6">
        <ScreenHead title={title} about={about}>
          {actions}
        </ScreenHead>
        {children}
      </div>
    </div>
  );
}

/** The place of a screen while it is read. */
export function Reading({ what }: { readonly what: string }) {
  return (
    <p role="status" className="p-6 text-soft">
      Reading {what}…
    </p>
  );
}

/**
 * A long text inside of a card. It scrolls, also by keyboard. A screen may have many, so none is a landmark.
 *
 * @param label says of what it is the text: another box on the screen has another label.
 */
export function ScrollBox({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div
      role="group"
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
  readonly kind?: ButtonKind;
  readonly isDisabled?: boolean;
  readonly onSure: () => void;
}) {
  const { name, sure, kind = "danger", isDisabled = false, onSure } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <Button kind={kind} isDisabled={isDisabled} onClick={() => dialog.current?.showModal()}>
        {name}…
      </Button>
      <Dialog ref={dialog} title={name}>
        {sure}
        <div className="mt-4 flex gap-2">
          <Button
            kind={kind}
            onClick={() => {
              dialog.current?.close();
              onSure();
            }}
          >
            {name}
          </Button>
          <Button onClick={() => dialog.current?.close()}>Keep</Button>
        </div>
      </Dialog>
    </>
  );
}

export function Command({ children }: { readonly children: string }) {
  return <code className="exact rounded-sm bg-raised px-1.5 py-0.5">{children}</code>;
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
