// The views above the sessions: one for each status with its count, and those that a person has saved.

import { STATUSES, type Status } from "@holdfast/proto/view";
import { Link } from "@tanstack/react-router";
import { useRef, useState, type FormEvent } from "react";
import { Icon } from "../../design/icons.tsx";
import { Dialog } from "../../design/surfaces.tsx";
import { Button } from "../../parts/parts.tsx";
import { shown, statusText } from "../../parts/text.ts";
import { useSavedViews, type SavedView } from "./saved-views.ts";
import type { SessionCounts } from "./session-counts.ts";
import type { SessionsSearch } from "./sessions-search.ts";

/** The statuses as a person asks for them: first what needs somebody. */
const ORDER: readonly Status[] = [
  "input_required",
  "paused",
  "failed",
  "working",
  "submitted",
  "waiting",
  "cancelling",
  "completed",
  "cancelled",
];

const TAB =
  "press inline-flex min-h-8 shrink-0 items-center gap-1.5 rounded-md px-2.5 text-sm font-medium whitespace-nowrap";
const RESTING = { className: "text-soft hover:bg-raised hover:text-text" };
const CURRENT = { className: "bg-raised text-text" };

export function SessionViews(props: { readonly search: SessionsSearch; readonly countOf: SessionCounts }) {
  const { search, countOf } = props;
  const { status: _, ...others } = search;
  return (
    <nav
      aria-label="Statuses"
      tabIndex={0}
      className="flex gap-0.5 overflow-x-auto border-b border-line px-4 py-1.5 md:px-6"
    >
      <StatusLink search={others} name="all" count={countOf()} />
      {ORDER.filter((each) => STATUSES.includes(each)).map((each) => (
        <StatusLink
          key={each}
          search={{ ...others, status: each }}
          name={statusText({ status: each })}
          count={countOf(each)}
        />
      ))}
    </nav>
  );
}

function StatusLink(props: {
  readonly search: SessionsSearch;
  readonly name: string;
  readonly count?: string | undefined;
}) {
  const { search, name, count } = props;
  return (
    <Link
      to="/sessions"
      search={search}
      replace
      activeOptions={{ exact: true }}
      activeProps={CURRENT}
      inactiveProps={RESTING}
      className={TAB}
    >
      {name}
      {count === undefined || count === "0" ? null : <span className="text-xs text-soft">{count}</span>}
    </Link>
  );
}

/** The saved views, and the button that keeps the filters of now. */
export function SavedViews({ search }: { readonly search: SessionsSearch }) {
  const { views, save, remove } = useSavedViews();
  const dialog = useRef<HTMLDialogElement>(null);
  const [name, setName] = useState("");
  const isFiltered = Object.keys(search).length > 0;
  const keep = (event: FormEvent): void => {
    event.preventDefault();
    save(name, search);
    setName("");
    dialog.current?.close();
  };
  return (
    <>
      <Button icon="filter" onClick={() => dialog.current?.showModal()}>
        Views
      </Button>
      <Dialog ref={dialog} title="Saved views">
        <h2 className="mb-3 text-lg font-semibold">Saved views</h2>
        {views.length === 0 ? (
          <p className="text-soft">A view keeps the filters of this screen under a name, in this browser.</p>
        ) : (
          <ul>
            {views.map((view) => (
              <View
                key={view.name}
                view={view}
                onOpen={() => dialog.current?.close()}
                onRemove={() => remove(view.name)}
              />
            ))}
          </ul>
        )}
        <form onSubmit={keep} className="mt-4 flex flex-wrap gap-2">
          {isFiltered ? (
            <>
              <input
                aria-label="Name of the view"
                placeholder="Name for the filters of now"
                maxLength={40}
                value={name}
                onChange={(event) => setName(event.target.value)}
                className="field min-w-40 flex-1"
              />
              <Button type="submit" kind="main" isDisabled={name.trim() === ""}>
                Save
              </Button>
            </>
          ) : (
            <p className="basis-full text-soft">Choose a status or a filter first, and save it here.</p>
          )}
          <Button onClick={() => dialog.current?.close()}>Close</Button>
        </form>
      </Dialog>
    </>
  );
}

function View(props: {
  readonly view: SavedView;
  readonly onOpen: () => void;
  readonly onRemove: () => void;
}) {
  const { view, onOpen, onRemove } = props;
  return (
    <li className="flex items-center gap-2 border-b border-line">
      <Link
        to="/sessions"
        search={view.search}
        onClick={onOpen}
        className="press flex min-h-11 min-w-0 flex-1 flex-col justify-center rounded-md px-2 hover:bg-raised"
      >
        <span className="truncate font-medium">{shown(view.name)}</span>
        <span className="truncate text-sm text-soft">{filtersText(view.search)}</span>
      </Link>
      <button
        type="button"
        aria-label={`Remove the view ${shown(view.name)}`}
        onClick={onRemove}
        className="press grid size-8 shrink-0 place-items-center rounded-md text-soft hover:bg-raised pointer-coarse:min-w-11"
      >
        <Icon name="close" />
      </button>
    </li>
  );
}

function filtersText(search: SessionsSearch): string {
  return Object.entries(search)
    .map(([name, value]) => `${name} ${shown(String(value))}`)
    .join(" · ");
}
