// `Icon`: the icons of the page, one set of outlines on a grid of 16.
//
// An icon stands beside a word that says the same, so it is hidden from what reads the page aloud. A button
// without a word has its name in `aria-label`.

const OUTLINES = {
  home: "M2.5 7 8 2.5 13.5 7v6.5H10V9.5H6v4H2.5z",
  inbox: "M2.5 9 4.5 3h7l2 6v4h-11zM2.5 9H6l1 1.5h2L10 9h3.5",
  sessions: "M2.5 4h11M2.5 8h11M2.5 12h7",
  agents: "M3.5 6h9v6.5h-9zM8 6V3M6 9v.5M10 9v.5M1.5 8.5v2M14.5 8.5v2",
  start: "M8 3v10M3 8h10",
  costs: "M2.5 13.5h11M4 13.5V9M8 13.5V4M12 13.5V6.5",
  fleet: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5v.01M5 11v.01",
  schedules: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.5l2 1.5",
  audit: "M4 2.5h6l2.5 2.5v8.5H4zM6.5 7h3.5M6.5 10h3.5",
  more: "M3.5 8v.01M8 8v.01M12.5 8v.01",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l3 3",
  keys: "M2 4.5h12v7H2zM4.5 7v.01M7 7v.01M9.5 7v.01M5 9.5h6",
  leave: "M6.5 2.5h-4v11h4M6.5 8h7M11 5.5 13.5 8 11 10.5",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM6 6l4 4M10 6l-4 4",
  done: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM5.5 8l2 2 3-3.5",
  alert: "M8 2.5 14 13H2zM8 6.5v3M8 11v.01",
  pause: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM6.5 6v4M9.5 6v4",
  ask: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM6.3 6.5C6.5 4.5 9.6 4.6 9.6 6.5 9.6 7.7 8 7.7 8 9M8 10.9v.01",
  queued: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11z",
  working: "M8 2.5a5.5 5.5 0 1 1-5.5 5.5M8 5.5v.01M8 8l2.5-2.5",
  waiting: "M4.5 2.5h7M4.5 13.5h7M5.5 2.5c0 4 5 4 5 5.5s-5 1.5-5 5.5M10.5 2.5c0 4-5 4-5 5.5s5 1.5 5 5.5",
  stopped: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM5.5 8h5",
  next: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  bell: "M4 11V7.5a4 4 0 0 1 8 0V11l1 1H3zM7 13.5h2",
  edit: "M3 13l.5-3L10.5 3 13 5.5 6 12.5z",
} as const;

export type IconName = keyof typeof OUTLINES;

/** @param className its size and colour; 16 pixels in the colour of the text without one. */
export function Icon({ name, className = "" }: { readonly name: IconName; readonly className?: string }) {
  return (
    <svg
      aria-hidden
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      className={`size-4 shrink-0 ${className}`}
    >
      <path d={OUTLINES[name]} />
    </svg>
  );
}
