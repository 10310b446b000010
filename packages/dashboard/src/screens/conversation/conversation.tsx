// The conversation of one session as work, while it grows: texts, calls with their results, and plans. Open
// questions stand below them, and a box steers the agent.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useState } from "react";
import type { LiveState } from "../../api/live-session.ts";
import { isEnded } from "../../api/types.ts";
import { LongText } from "../../parts/long-text.tsx";
import { Empty } from "../../parts/parts.tsx";
import { useFollowEnd } from "../../parts/reading/use-follow-end.ts";
import { Notices, withNotice, type Notice } from "../inbox/notices.tsx";
import { NowLine } from "../now-line.tsx";
import { OpenQuestions } from "./open-questions.tsx";
import { Steer } from "./steer.tsx";
import { WorkRow } from "./work-row.tsx";

/** The height of a row before it was measured. */
const ROW_PX = 64;

export function Conversation({ live }: { readonly live: LiveState }) {
  const { session } = live;
  const { items } = live.work;
  const { scroll, content, onScroll } = useFollowEnd();
  // A notice outlives its question, which goes when the session takes the answer.
  const [notices, setNotices] = useState<readonly Notice[]>([]);
  const report = (notice: Notice): void => setNotices((before) => withNotice(before, notice));
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: 6,
    getItemKey: (at) => items[at]!.key,
  });
  if (session === undefined) return null;
  const hasQuestions = session.waits.some(({ type }) => type === "input");
  const texts = isEnded(session) || session.status === "paused" ? [] : [...live.writing];
  return (
    <div className="flex h-full flex-col">
      {items.length === 0 && !hasQuestions && texts.length === 0 && notices.length === 0 ? (
        <Empty title="There is no conversation">
          <p>
            {session.entryCount > 0
              ? "It is being read."
              : "This agent has stored no message. Agents that talk to a model store every message here."}
          </p>
        </Empty>
      ) : (
        <div
          ref={scroll}
          role="region"
          aria-label="Conversation"
          tabIndex={0}
          className="min-h-0 flex-1 overflow-auto"
          onScroll={onScroll}
        >
          <div ref={content}>
            <ol className="relative mx-auto max-w-4xl" style={{ height: virtual.getTotalSize() }}>
              {virtual.getVirtualItems().map(({ index, key, start }) => (
                <li
                  key={key}
                  ref={virtual.measureElement}
                  data-index={index}
                  className="absolute inset-x-0 top-0 px-3"
                  style={{ transform: `translateY(${start}px)` }}
                >
                  <WorkRow item={items[index]!} isLive={session.endedAt === undefined} />
                </li>
              ))}
            </ol>
            {texts.map(([task, text]) => (
              <article
                key={task}
                aria-label="assistant, being written"
                dir="auto"
                className="mx-auto max-w-4xl px-3 py-2"
              >
                <LongText text={text} isMarkdown />
              </article>
            ))}
            {hasQuestions ? <OpenQuestions session={session} onNotice={report} /> : null}
            {notices.length === 0 ? null : (
              <div className="mx-auto max-w-4xl p-3">
                <Notices notices={notices} hasLinks={false} onClose={() => setNotices([])} />
              </div>
            )}
          </div>
        </div>
      )}
      <NowLine live={live} />
      <Steer session={session} taken={live.taken} />
    </div>
  );
}
