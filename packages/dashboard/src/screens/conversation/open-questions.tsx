// The questions of one session that a person answers in place, below its conversation. They are
// shown and answered as in the inbox.

import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { InboxReader, type OpenItem } from "../../api/open-items.ts";
import type { Session } from "../../api/types.ts";
import { Problem } from "../../parts/parts.tsx";
import { brief, dateText, whyText } from "../../parts/text.ts";
import { useAbout } from "../../parts/use-session.ts";
import { Answer } from "../inbox/inbox-answer.tsx";
import { ItemTexts, textsOf } from "../inbox/inbox-item.tsx";
import type { Notice } from "../inbox/notices.tsx";
import { useRest, useSeen } from "../inbox/seen.ts";

const TITLES: Readonly<Record<OpenItem["kind"], string>> = {
  uncertain_effect: "An effect may have happened",
  approval: "Asks for your approval",
  question: "Asks you",
  pause: "Paused",
  answered: "Answered",
};

export function OpenQuestions(props: {
  readonly session: Session;
  readonly onNotice: (notice: Notice) => void;
}) {
  const { session, onNotice } = props;
  const isLocal = useAbout()?.isLocal ?? true;
  const [reader] = useState(() => new InboxReader());
  const { sessionId, nextSeq, updatedAt } = session;
  // Below the key of the inbox: an answer makes both be read again.
  const { data = [], error } = useQuery({
    queryKey: ["inbox", "of", sessionId, nextSeq, updatedAt],
    queryFn: () => reader.readSession(session, (one) => whyText(one, isLocal), isLocal),
    placeholderData: (before) => before,
  });
  return (
    <div className="mx-auto max-w-4xl space-y-3 p-3">
      {error === null ? null : <Problem error={error} />}
      {data
        .filter(({ wait }) => wait !== undefined)
        .map((item) => (
          <QuestionCard key={item.id} item={item} onNotice={onNotice} />
        ))}
    </div>
  );
}

function QuestionCard(props: { readonly item: OpenItem; readonly onNotice: (notice: Notice) => void }) {
  const { item, onNotice } = props;
  const { kind, id, until } = item;
  const card = useRef<HTMLElement>(null);
  const { isSeen, onSeen } = useSeen(textsOf(item));
  const isAtRest = useRest(id);
  return (
    <article
      ref={card}
      tabIndex={0}
      aria-label={brief(`${TITLES[kind]}: ${item.tool ?? item.what}`, 120)}
      className="rounded-lg border-2 border-warn bg-panel p-4 focus:outline-2 focus:outline-accent"
    >
      <p className="font-semibold text-warn">{TITLES[kind]}</p>
      <ItemTexts item={item} onSeen={onSeen} />
      <Answer
        item={item}
        card={card}
        isSeen={isSeen}
        isAtRest={isAtRest}
        onNotice={onNotice}
        onAnswered={() => {}}
      />
      {until === undefined ? null : <p className="mt-2 text-xs text-soft">until {dateText(until)}</p>}
    </article>
  );
}
