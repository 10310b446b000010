// `useFollowEnd`: a scrolling part that begins at its end and stays there while it grows, until a person scrolls
// away from it.

import { useEffect, useRef, type RefObject, type UIEvent } from "react";

/** A person who is as near to the end as this follows it. */
const END_PX = 60;

/** @returns the scrolling element, the element in it that grows, and what its scroll event calls. */
export function useFollowEnd(): {
  readonly scroll: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  readonly onScroll: (event: UIEvent<HTMLElement>) => void;
} {
  const scroll = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const observed = useRef<ResizeObserver>(undefined);
  const seen = useRef<Element>(undefined);
  // The elements come when there is something to show.
  useEffect(() => {
    if (content.current === null || scroll.current === null || seen.current === content.current) return;
    seen.current = content.current;
    observed.current?.disconnect();
    const follow = (): void => {
      const { current } = scroll;
      if (isAtEnd.current && current !== null) current.scrollTop = current.scrollHeight;
    };
    observed.current = new ResizeObserver(follow);
    for (const element of [content.current, scroll.current]) observed.current.observe(element);
  });
  useEffect(
    () => () => {
      observed.current?.disconnect();
      seen.current = undefined;
    },
    [],
  );
  const onScroll = ({ currentTarget }: UIEvent<HTMLElement>): void => {
    const { scrollTop, scrollHeight, clientHeight } = currentTarget;
    isAtEnd.current = scrollTop + clientHeight > scrollHeight - END_PX;
  };
  return { scroll, content, onScroll };
}
