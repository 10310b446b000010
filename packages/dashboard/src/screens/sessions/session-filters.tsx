// The filters above the sessions. They are in the address.

import { STATUSES } from "@holdfast/proto/view";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState, type ReactNode, type RefObject } from "react";
import { readSessionsSearch, type SessionsSearch } from "./sessions-search.ts";

export function Filters(props: {
  readonly search: SessionsSearch;
  readonly isLocal: boolean;
  /** The box that takes the focus when a person searches. */
  readonly searchBox: RefObject<HTMLInputElement | null>;
  /** The count of the sessions. */
  readonly children: ReactNode;
}) {
  const { search, isLocal, searchBox, children } = props;
  const { status, agent, owner, label = "", text = "", endedFrom = "", endedTo = "", cost = "" } = search;
  const navigate = useNavigate({ from: "/sessions" });
  const set = (change: SessionsSearch): void =>
    void navigate({ search: readSessionsSearch({ ...search, ...change }), replace: true });
  return (
    <div role="search" className="flex flex-wrap gap-2 border-b border-line px-3 py-2">
      <StatusBox value={status ?? ""} onChange={(value) => set({ status: value })} />
      <FilterBox label="Agent" value={agent ?? ""} onChange={(value) => set({ agent: value })} />
      {isLocal ? null : (
        <FilterBox label="Owner" value={owner ?? ""} onChange={(value) => set({ owner: value })} />
      )}
      <FilterBox label="Label" value={label} onChange={(value) => set({ label: value })} />
      <FilterBox
        label="Search"
        placeholder="Search ( / )"
        box={searchBox}
        className="min-w-32 flex-1"
        value={text}
        onChange={(value) => set({ text: value })}
      />
      <DayBox label="Ended from" value={endedFrom} onChange={(value) => set({ endedFrom: value })} />
      <DayBox label="to" value={endedTo} onChange={(value) => set({ endedTo: value })} />
      <FilterBox label="Spent from, $" value={cost} onChange={(value) => set({ cost: value })} />
      {children}
    </div>
  );
}

interface BoxProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function StatusBox({ value, onChange }: BoxProps) {
  return (
    <select
      aria-label="Status"
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className="field"
    >
      <option value="">every status</option>
      {STATUSES.map((each) => (
        <option key={each} value={each}>
          {each.replace("_", " ")}
        </option>
      ))}
    </select>
  );
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
      <input
        type="date"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="field text-text"
      />
    </label>
  );
}
