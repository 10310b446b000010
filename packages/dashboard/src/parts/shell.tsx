// The frame around all screens: navigation, the sign-out, and the keys that work everywhere.

import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, type RefObject } from "react";
import { signOut } from "../api/client.ts";
import { Palette } from "./palette.tsx";
import { SYSTEM_SCREENS } from "./system-screens.ts";
import { brief } from "./text.ts";
import { useAbout } from "./use-session.ts";

/** Whether a key was pressed in something that takes text. */
function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target?.closest("input, textarea, select, [contenteditable]") != null
  );
}

/** The keys that only move. They go on while they are held; any other key acts once for each press. */
const MOVES: ReadonlySet<string> = new Set([
  "j",
  "k",
  "ArrowDown",
  "ArrowUp",
  "PageDown",
  "PageUp",
  "[",
  "]",
]);

/**
 * Calls the action of a key, unless a person types. Enter belongs to the button or the link that has the
 * focus.
 *
 * @param within a part of the page that must have the focus.
 */
export function useKeys(
  keys: Readonly<Record<string, () => void>>,
  within?: RefObject<HTMLElement | null>,
): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event) || document.querySelector("dialog[open]") !== null) return;
      const action = latest.current[event.key];
      if (action === undefined || (event.repeat && !MOVES.has(event.key))) return;
      if (within !== undefined && within.current?.contains(event.target as Node) !== true) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

const KEYS = [
  ["i", "Inbox"],
  ["s", "Sessions"],
  ["g", "Agents"],
  ["n", "start a session"],
  ...SYSTEM_SCREENS.map(({ key, name }) => [key, name] as const),
  ["j  k", "next, previous"],
  ["Enter", "open"],
  ["a", "approve"],
  ["d", "deny"],
  ["e", "write an answer or a reason"],
  ["x", "select for an answer to several at once"],
  ["t  c  l  w  b", "timeline, conversation, journal, workspace, tree of a session"],
  ["[  ]  f", "checkpoint before, checkpoint after, fork from a record"],
  ["/", "search"],
  ["Ctrl K", "go to anything"],
  ["?", "these keys"],
] as const;

export function Shell({ inboxCount }: { readonly inboxCount: number | undefined }) {
  const about = useAbout();
  const help = useRef<HTMLDialogElement>(null);
  const showHelp = (): void => help.current?.showModal();
  useScreenKeys(showHelp);
  const leave = async (): Promise<void> => {
    await signOut();
    location.reload();
  };
  return (
    <div className="flex h-full flex-col">
      <header className="flex items-center gap-x-1 border-b border-line bg-panel px-2 py-2">
        <span className="mr-2 hidden font-semibold sm:inline">Holdfast</span>
        <Tabs inboxCount={inboxCount} />
        <span className="ml-auto hidden pl-4 max-w-[40vw] truncate text-soft sm:block" title={about?.place}>
          {about === undefined ? "" : brief(`${about.name} · ${about.place}`)}
        </span>
        <button type="button" className={`${TAB} ml-auto sm:ml-0`} onClick={showHelp} aria-label="Keys">
          ?
        </button>
        <button type="button" className={TAB} onClick={() => void leave()}>
          Sign out
        </button>
      </header>
      <main className="min-h-0 flex-1">
        <Outlet />
      </main>
      <Palette />
      <KeysDialog ref={help} />
    </div>
  );
}

/** The keys that go to a screen. */
function useScreenKeys(showHelp: () => void): void {
  const navigate = useNavigate();
  useKeys({
    i: () => void navigate({ to: "/" }),
    s: () => void navigate({ to: "/sessions" }),
    g: () => void navigate({ to: "/agents" }),
    n: () => void navigate({ to: "/start" }),
    ...Object.fromEntries(SYSTEM_SCREENS.map(({ key, path }) => [key, () => void navigate({ to: path })])),
    "?": showHelp,
  });
}

const TAB = "shrink-0 rounded-md px-2.5 py-1.5 font-medium whitespace-nowrap hover:bg-raised";
const ACTIVE = { className: "bg-raised text-accent" };

function Tabs({ inboxCount }: { readonly inboxCount: number | undefined }) {
  const { pathname } = useLocation();
  const tabs = useRef<HTMLElement>(null);
  // On a narrow screen the tabs scroll sideways.
  useEffect(() => {
    tabs.current
      ?.querySelector("[aria-current]")
      ?.scrollIntoView({ behavior: "instant", block: "nearest", inline: "nearest" });
  }, [pathname]);
  return (
    <nav ref={tabs} aria-label="Screens" className="flex min-w-0 gap-1 overflow-x-auto">
      <Link to="/" className={TAB} activeProps={ACTIVE} activeOptions={{ exact: true }}>
        Inbox
        {inboxCount === undefined || inboxCount === 0 ? null : (
          <span className="ml-2 rounded-full bg-accent px-2 text-xs font-semibold text-on-accent">
            {inboxCount}
          </span>
        )}
      </Link>
      <Link to="/sessions" className={TAB} activeProps={ACTIVE}>
        Sessions
      </Link>
      <Link to="/agents" className={TAB} activeProps={ACTIVE}>
        Agents
      </Link>
      <Link to="/start" className={TAB} activeProps={ACTIVE}>
        Start
      </Link>
      {SYSTEM_SCREENS.map(({ path, name }) => (
        <Link key={path} to={path} className={TAB} activeProps={ACTIVE}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

function KeysDialog({ ref }: { readonly ref: RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog
      ref={ref}
      aria-label="Keys"
      className="m-auto rounded-lg border border-line bg-panel p-5 text-text backdrop:bg-black/40"
    >
      <h2 className="mb-3 font-semibold">Keys</h2>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        {KEYS.map(([key, what]) => (
          <div key={key} className="contents">
            <dt className="font-mono">{key}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button
        type="button"
        className="mt-4 rounded-md border border-line px-3 py-1"
        onClick={() => ref.current?.close()}
      >
        Close
      </button>
    </dialog>
  );
}
