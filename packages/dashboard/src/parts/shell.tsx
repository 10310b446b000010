// The frame around all screens: navigation, the sign-out, and the keys that work everywhere.

import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, type RefObject } from "react";
import { signOut } from "../api/client.ts";
import { Icon } from "../design/icons.tsx";
import { Dialog } from "../design/surfaces.tsx";
import { SCREENS } from "./all-screens.ts";
import { Palette } from "./palette.tsx";
import { Button } from "./parts.tsx";
import { brief, briefPath } from "./text.ts";
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
  ...SCREENS.map(({ key, name }) => [key, name] as const),
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
  const help = useRef<HTMLDialogElement>(null);
  const showHelp = (): void => help.current?.showModal();
  const navigate = useNavigate();
  useKeys({
    ...Object.fromEntries(SCREENS.map(({ key, path }) => [key, () => void navigate({ to: path })])),
    "?": showHelp,
  });
  return (
    <div className="flex h-full max-md:flex-col">
      <Sidebar inboxCount={inboxCount} onHelp={showHelp} />
      <main className="min-h-0 min-w-0 flex-1">
        <Outlet />
      </main>
      <ThumbBar inboxCount={inboxCount} onHelp={showHelp} />
      <Palette />
      <Dialog ref={help} title="Keys">
        <h2 className="mb-3 text-lg font-semibold">Keys</h2>
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
          {KEYS.map(([key, what]) => (
            <div key={key} className="contents">
              <dt className="font-mono">{key}</dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <div className="mt-4">
          <Button onClick={() => help.current?.close()}>Close</Button>
        </div>
      </Dialog>
    </div>
  );
}

interface BarProps {
  readonly inboxCount: number | undefined;
  readonly onHelp: () => void;
}

async function leave(): Promise<void> {
  await signOut();
  location.reload();
}

const ITEM = "press flex min-h-8 w-full items-center gap-2.5 rounded-md px-2.5 py-1 text-left font-medium";
const RESTING = { className: "text-soft hover:bg-raised hover:text-text" };
const ACTIVE = { className: "bg-raised text-text" };

/** The screens at the side of a wide window. */
function Sidebar({ inboxCount, onHelp }: BarProps) {
  const about = useAbout();
  return (
    <header className="flex w-52 shrink-0 flex-col gap-1 overflow-y-auto border-r border-line p-2.5 max-md:hidden">
      <p className="flex items-center gap-2.5 px-2.5 pt-1 pb-3 text-lg font-semibold">Holdfast</p>
      <nav aria-label="Screens" className="flex flex-col gap-0.5">
        {SCREENS.map((screen) => (
          <ScreenLink key={screen.path} screen={screen} inboxCount={inboxCount} />
        ))}
      </nav>
      <div className="mt-auto flex flex-col gap-0.5 pt-4">
        <p className="px-2.5 pb-1 text-xs break-words text-soft" title={about?.place}>
          {about === undefined ? "" : `${brief(about.name, 60)} · ${briefPath(about.place, 60)}`}
        </p>
        <Others onHelp={onHelp} />
      </div>
    </header>
  );
}

function ScreenLink(props: {
  readonly screen: (typeof SCREENS)[number];
  readonly inboxCount: number | undefined;
}) {
  const { screen, inboxCount } = props;
  const { path, name, icon } = screen;
  return (
    <Link
      to={path}
      className={ITEM}
      activeProps={ACTIVE}
      inactiveProps={RESTING}
      activeOptions={{ exact: path === "/" }}
    >
      <Icon name={icon} />
      {name}
      {path === "/inbox" ? <Waiting count={inboxCount} /> : null}
    </Link>
  );
}

/** How many items of the inbox wait. */
function Waiting({ count }: { readonly count: number | undefined }) {
  return count === undefined || count === 0 ? null : (
    <span className="ml-auto rounded-full bg-accent px-2 text-xs font-semibold text-on-accent">{count}</span>
  );
}

/** The keys and the sign-out, which are no screens. */
function Others({ onHelp }: { readonly onHelp: () => void }) {
  return (
    <>
      <button type="button" className={`${ITEM} ${RESTING.className}`} onClick={onHelp}>
        <Icon name="keys" />
        Keys
      </button>
      <button type="button" className={`${ITEM} ${RESTING.className}`} onClick={() => void leave()}>
        <Icon name="leave" />
        Sign out
      </button>
    </>
  );
}

const THUMB =
  "flex min-h-14 flex-1 flex-col items-center justify-center gap-0.5 text-xs font-medium aria-expanded:text-accent";

/** The screens at the lower edge of a narrow window, where a thumb reaches them. The others are behind More. */
function ThumbBar({ inboxCount, onHelp }: BarProps) {
  const more = useRef<HTMLDialogElement>(null);
  const close = (): void => more.current?.close();
  const { pathname } = useLocation();
  useEffect(close, [pathname]);
  const isOther = SCREENS.some(({ main, path }) => !main && pathname.startsWith(path));
  return (
    <nav aria-label="Screens" className="flex border-t border-line bg-panel md:hidden">
      {SCREENS.filter(({ main }) => main).map(({ path, name, icon }) => (
        <Link
          key={path}
          to={path}
          className={THUMB}
          activeProps={{ className: "text-accent" }}
          inactiveProps={{ className: "text-soft" }}
          activeOptions={{ exact: path === "/" }}
        >
          <span className="relative">
            <Icon name={icon} className="size-5" />
            {path === "/inbox" && inboxCount !== undefined && inboxCount > 0 ? (
              <span className="absolute -top-1 left-3 rounded-full bg-accent px-1.5 text-xs font-semibold text-on-accent">
                {inboxCount > 99 ? "99+" : inboxCount}
              </span>
            ) : null}
          </span>
          {name}
        </Link>
      ))}
      <button
        type="button"
        className={`${THUMB} ${isOther ? "text-accent" : "text-soft"}`}
        onClick={() => more.current?.showModal()}
      >
        <Icon name="more" className="size-5" />
        More
      </button>
      <Dialog ref={more} title="More screens">
        <div className="flex flex-col gap-1">
          {SCREENS.filter(({ main }) => !main).map((screen) => (
            <ScreenLink key={screen.path} screen={screen} inboxCount={undefined} />
          ))}
          <Others
            onHelp={() => {
              close();
              onHelp();
            }}
          />
        </div>
      </Dialog>
    </nav>
  );
}
