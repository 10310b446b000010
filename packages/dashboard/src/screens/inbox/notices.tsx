// `Notices`: what a person must know of items that they have seen and that may be gone. The receipt of an answer is
// one of them, with the person, the time and the call. It stays until the next answer.

import { Link } from "@tanstack/react-router";
import type { OpenItem } from "../../api/open-items.ts";
import { Banner } from "../../design/surfaces.tsx";
import { CallWords } from "../../parts/reading/call-words.tsx";
import { ContinuesBy } from "../../parts/parts.tsx";
import { brief, dateText, shown } from "../../parts/text.ts";

export interface Notice {
  readonly text: string;
  /** Whether its session needs a process to go on. */
  readonly isToContinue?: boolean;
  /** The item that the person has answered, in a receipt. */
  readonly answered?: Pick<OpenItem, "work" | "what">;
  /** Absent in a receipt for several items. */
  readonly sessionId?: string;
  readonly title?: string | undefined;
}

/** @param said such as "Approved". @param name of the person. */
export function receiptOf(said: string, name: string, answered?: OpenItem): Notice {
  const text = `${said} by ${name}, ${dateText(Date.now())}`;
  if (answered === undefined) return { text, answered: { what: "" } };
  return { text, answered, sessionId: answered.sessionId, title: answered.session.title };
}

const NOTICES = 5;

/** A notice that is there already is not repeated, and a receipt takes the place of the one before. */
export function withNotice(notices: readonly Notice[], notice: Notice): readonly Notice[] {
  const others = notices.filter(
    ({ sessionId, text, answered }) =>
      (sessionId !== notice.sessionId || text !== notice.text) &&
      (answered === undefined || notice.answered === undefined),
  );
  return [...others, notice].slice(-NOTICES);
}

export function Notices(props: {
  readonly notices: readonly Notice[];
  /** Whether each names its session. */
  readonly hasLinks: boolean;
  readonly onClose: () => void;
}) {
  const { notices, hasLinks, onClose } = props;
  if (notices.length === 0) return null;
  const isGood = notices.every(({ answered }) => answered !== undefined);
  return (
    <Banner
      tone={isGood ? "good" : "accent"}
      role="status"
      {...(isGood && { icon: "check" })}
      onClose={onClose}
    >
      {notices.map(({ sessionId, title, text, isToContinue = false, answered }) => (
        <div key={`${sessionId} ${text}`} className="break-words">
          {hasLinks && sessionId !== undefined ? (
            <Link
              to="/sessions/$id"
              params={{ id: sessionId }}
              className={`mr-2 text-accent underline ${title === undefined ? "font-mono text-xs" : ""}`}
            >
              {title === undefined ? sessionId : brief(title, 80)}
            </Link>
          ) : null}
          {shown(text)}{" "}
          {isToContinue && sessionId !== undefined ? <ContinuesBy sessionId={sessionId} /> : null}
          <Answered {...answered} />
        </div>
      ))}
    </Banner>
  );
}

const WHAT_CHARS = 200;

function Answered({ work, what = "" }: Partial<Pick<OpenItem, "work" | "what">>) {
  if (work === undefined && what === "") return null;
  return (
    <div className="text-text">
      {work === undefined ? brief(what, WHAT_CHARS) : <CallWords call={work} />}
    </div>
  );
}
