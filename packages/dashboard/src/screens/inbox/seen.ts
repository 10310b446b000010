// `useSeen`, `useRest`: whether a person can have read the texts that an answer is about.
//
//   - A text is seen when its last line was in the window. The part of a long text that is not in the page
//     yet is not seen.
//   - A card that came, moved or was selected by the page takes no answer for a moment: the person aimed at
//     another.

import { useEffect, useState } from "react";

const REST_MS = 400;

/** @param names the texts. @returns whether all were seen, and the call that says so of one. */
export function useSeen(names: readonly string[]): {
  readonly isSeen: boolean;
  readonly onSeen: (name: string) => void;
} {
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  return {
    isSeen: names.every((name) => seen.has(name)),
    onSeen: (name) => setSeen((before) => new Set([...before, name])),
  };
}

/** @param spot where something stands and since when. @returns whether it has stood there for a moment. */
export function useRest(spot: string): boolean {
  const [rested, setRested] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setRested(spot), REST_MS);
    return () => clearTimeout(timer);
  }, [spot]);
  return rested === spot;
}
