// The surfaces of screens: cards, chips, banners, dialogs, lists, and figures with their names.
//
// These parts know tokens, and nothing of sessions.

import type { ReactNode, RefObject } from "react";
import { Icon, type IconName } from "./icons.tsx";

/** How something is. */
export type Tone = "plain" | "accent" | "good" | "warn" | "bad" | "busy";

/** A colour of a text, for each tone. */
export const TONE_TEXT: Readonly<Record<Tone, string>> = {
  plain: "text-soft",
  accent: "text-accent",
  good: "text-good",
  warn: "text-warn",
  bad: "text-bad",
  busy: "text-busy",
};

const TONE_GROUND: Readonly<Record<Tone, string>> = {
  plain: "bg-raised text-soft",
  accent: "bg-accent-ground text-accent",
  good: "bg-good-ground text-good",
  warn: "bg-warn-ground text-warn",
  bad: "bg-bad-ground text-bad",
  busy: "bg-busy-ground text-busy",
};

/** A word that says how something is. */
export function Chip(props: {
  readonly tone?: Tone;
  readonly icon?: IconName;
  readonly children: ReactNode;
}) {
  const { tone = "plain", icon, children } = props;
  return (
    <span
      className={`inline-flex max-w-full items-center gap-1 rounded-full px-2 align-middle text-xs font-medium ${TONE_GROUND[tone]}`}
    >
      {icon === undefined ? null : <Icon name={icon} className="size-3" />}
      <span className="truncate">{children}</span>
    </span>
  );
}

/** A part of a screen with a heading. Screen readers know it by its name. */
export function Card(props: {
  readonly title: string;
  /** A note beside the heading. */
  readonly aside?: ReactNode;
  /** Whether its content reaches to its edges, as a list does. */
  readonly isFlush?: boolean;
  readonly children: ReactNode;
}) {
  const { title, aside, isFlush = false, children } = props;
  return (
    <section
      aria-label={title}
      className="min-w-0 overflow-hidden rounded-lg border border-line bg-panel shadow-sm"
    >
      <header className="flex min-h-10 flex-wrap items-center gap-x-3 gap-y-1 px-4 pt-2.5 pb-1">
        <h2 className="font-semibold">{title}</h2>
        {aside === undefined ? null : <div className="ml-auto text-sm text-soft">{aside}</div>}
      </header>
      <div className={isFlush ? "pb-1" : "px-4 pb-4"}>{children}</div>
    </section>
  );
}

/** One card of a list of things, such as runners. */
export const THING = "rounded-lg border border-line bg-panel p-4 shadow-sm";

/** A line over a screen that says something about all of it. */
export function Banner(props: {
  readonly tone: Tone;
  readonly role: "alert" | "status";
  readonly icon?: IconName;
  readonly onClose?: (() => void) | undefined;
  readonly children: ReactNode;
}) {
  const { tone, role, icon, onClose, children } = props;
  return (
    <div className={`flex items-start gap-2.5 rounded-md px-3 py-2 text-sm ${TONE_GROUND[tone]}`}>
      {icon === undefined ? null : <Icon name={icon} className="mt-0.5" />}
      <div role={role} className="min-w-0 flex-1 break-words">
        {children}
      </div>
      {onClose === undefined ? null : (
        <button
          type="button"
          aria-label="Close the message"
          onClick={onClose}
          className="press -my-1 -mr-1.5 grid size-7 shrink-0 place-items-center rounded-md hover:bg-panel pointer-coarse:min-w-11"
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}

/** A dialog over the screen. Escape and a press beside it close it. */
export function Dialog(props: {
  readonly ref: RefObject<HTMLDialogElement | null>;
  readonly title: string;
  readonly children: ReactNode;
}) {
  const { ref, title, children } = props;
  return (
    <dialog
      ref={ref}
      aria-label={title}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
      className="m-auto max-h-full w-full max-w-screen overflow-auto rounded-lg border border-line bg-panel text-text shadow-xl backdrop:bg-veil sm:max-w-lg"
    >
      <div className="p-5">{children}</div>
    </dialog>
  );
}

/** The head of a screen: its name, what it counts, and what can be done. */
export function ScreenHead(props: {
  readonly title: string;
  readonly about?: ReactNode;
  readonly children?: ReactNode;
}) {
  const { title, about, children } = props;
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <h1 className="text-xl font-semibold">{title}</h1>
      {about === undefined ? null : <div className="text-soft">{about}</div>}
      {children === undefined ? null : (
        <div className="ml-auto flex flex-wrap items-center gap-2">{children}</div>
      )}
    </header>
  );
}

/** A figure with its name. */
export function Figure(props: {
  readonly name: string;
  readonly tone?: Tone;
  readonly note?: ReactNode;
  readonly children: ReactNode;
}) {
  const { name, tone, note, children } = props;
  return (
    <div className="min-w-0">
      <dt className="truncate text-sm text-soft">{name}</dt>
      <dd className={`text-2xl font-semibold ${tone === undefined ? "" : TONE_TEXT[tone]}`}>{children}</dd>
      {note === undefined ? null : <dd className="text-sm text-soft">{note}</dd>}
    </div>
  );
}

/** How much of a limit is used, as a bar. A text beside it says the same. */
export function Meter({ used, max }: { readonly used: number; readonly max: number }) {
  const part = max > 0 ? Math.min(1, used / max) : 1;
  return (
    <svg aria-hidden className="h-1.5 w-full min-w-0 flex-1 rounded-full bg-raised">
      <rect
        width={`${Math.round(part * 100)}%`}
        height="100%"
        className={part >= 1 ? "fill-bad" : part > 0.8 ? "fill-warn" : "fill-accent"}
      />
    </svg>
  );
}
