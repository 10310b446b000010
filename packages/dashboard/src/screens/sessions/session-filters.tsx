// The filters above the sessions. They are in the address.

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState, type RefObject } from "react";
import { Icon } from "../../design/icons.tsx";
import { shown } from "../../parts/text.ts";
import { readSessionsSearch, type SessionsSearch } from "./sessions-search.ts";

export function Filters(props: {
  readonly search: SessionsSearch;
  readonly isLocal: boolean;
  /** The box that takes the focus when a person searches. */
  readonly searchBox: RefObject<HTMLInputElement | null>;
}) {
  const { search, isLocal, searchBox } = props;
  const { agent, owner, label = "", text = "", endedFrom = "", endedTo = "", cost = "" } = search;
  const navigate = useNavigate({ from: "/sessions" });
  const set = (change: SessionsSearch): void =>
    void navigate({ search: readSessionsSearch({ ...search, ...change }), replace: true });
  return (
    <div role="search" className="space-y-2 px-4 pt-3 pb-2 md:px-6">
      <FilterBox
        label="Search"
        placeholder="Id, title, agent, input, output, question, error ( / )"
        box={searchBox}
        className="w-full"
        value={text}
        onChange={(value) => set({ text: value })}
      />
      <details>
        <summary className="press inline-flex min-h-8 items-center gap-1.5 rounded-md text-sm text-soft hover:text-text">
          <Icon name="down" />
          More filters
        </summary>
        <div className="flex flex-wrap gap-2 pt-1">
          <FilterBox label="Agent" value={agent ?? ""} onChange={(value) => set({ agent: value })} />
          {isLocal ? null : (
            <FilterBox label="Owner" value={owner ?? ""} onChange={(value) => set({ owner: value })} />
          )}
          <FilterBox label="Label" value={label} onChange={(value) => set({ label: value })} />
          <FilterBox label="Spent from, $" value={cost} onChange={(value) => set({ cost: value })} />
          <DayBox label="Ended from" value={endedFrom} onChange={(value) => set({ endedFrom: value })} />
          <DayBox label="to" value={endedTo} onChange={(value) => set({ endedTo: value })} />
        </div>
      </details>
      <Chosen search={search} onRemove={(name) => set({ [name]: "" })} />
    </div>
  );
}

const NAMES: Readonly<Partial<Record<keyof SessionsSearch, string>>> = {
  agent: "agent",
  owner: "owner",
  label: "label",
  text: "text",
  endedFrom: "ended from",
  endedTo: "ended until",
  cost: "spent from $",
};

/** The filters that narrow the list now. A press removes one. */
function Chosen(props: {
  readonly search: SessionsSearch;
  readonly onRemove: (name: keyof SessionsSearch) => void;
}) {
  const { search, onRemove } = props;
  const chosen = Object.entries(search).filter(([name]) => name in NAMES) as [keyof SessionsSearch, string][];
  if (chosen.length === 0) return null;
  return (
    <ul aria-label="Filters" className="flex flex-wrap gap-1.5">
      {chosen.map(([name, value]) => (
        <li key={name} className="max-w-full">
          <button
            type="button"
            onClick={() => onRemove(name)}
            className="press inline-flex min-h-7 max-w-full items-center gap-1 rounded-full bg-accent-ground px-2.5 text-xs font-medium text-accent"
          >
            <span className="truncate">
              {NAMES[name]} {shown(value)}
            </span>
            <Icon name="close" className="size-3" />
            <span className="sr-only">remove the filter</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

interface BoxProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** A filter that is applied when its typing is done. */
function FilterBox({
  label,
  value,
  onChange,
  placeholder = label,
  className = "w-32",
  box,
}: BoxProps & {
  readonly label: string;
  readonly placeholder?: string;
  readonly className?: string;
  readonly box?: RefObject<HTMLInputElement | null>;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      ref={box}
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => text !== value && onChange(text)}
      onKeyDown={(event) => {
        if (event.key === "Enter") onChange(text);
        if (event.key === "Escape") event.currentTarget.blur();
      }}
      className={`field ${className}`}
    />
  );
}

function DayBox({ label, value, onChange }: BoxProps & { readonly label: string }) {
  return (
    <label className="flex items-center gap-1.5 text-soft">
      {label}
      <input type="date" value={value} onChange={(event) => onChange(event.target.value)} className="field" />
    </label>
  );
}
