// The conversation of one session as it grows, with a box that steers it.
//
// A message is stored before the page says so. The page says what became of each message, by the id of its
// signal: stored, then taken.

import { NEXT_INPUT, planOf, stepText, subAgentCallOf, withoutReplacedPlans } from "@holdfast/proto/view";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useSyncExternalStore, type FormEvent } from "react";
import { ApiError } from "../api/client.ts";
import type { LiveState } from "../api/live-session.ts";
import type { OutboxMessage } from "../api/outbox.ts";
import { isEnded, type Entry, type Session } from "../api/types.ts";
import { DiffText } from "../code/code.tsx";
import { LongText } from "../parts/long-text.tsx";
import { Button, Empty, ScrollBox } from "../parts/parts.tsx";
import { brief, dateText, json, shown } from "../parts/text.ts";
import { useDraft, useOutbox } from "../parts/use-session.ts";

export function Conversation({ live }: { readonly live: LiveState }) {
  const { session } = live;
  const entries = useMemo(() => withoutReplacedPlans(live.entries), [live.entries]);
  const scroll = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => 110,
    overscan: 6,
    getItemKey: (at) => entries[at]!.id,
  });
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current && entries.length > 0) virtual.scrollToIndex(entries.length - 1, { align: "end" });
  }, [entries.length]);
  if (session === undefined) return null;
  return (
    <div className="flex h-full flex-col">
      {entries.length === 0 ? (
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
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
            isAtEnd.current = scrollTop + clientHeight > scrollHeight - 40;
          }}
        >
          <ol className="relative mx-auto max-w-4xl" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map(({ index, key, start }) => (
              <li
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className="absolute inset-x-0 top-0 px-3 py-1.5"
                style={{ transform: `translateY(${start}px)` }}
              >
                <Message entry={entries[index]!} />
              </li>
            ))}
          </ol>
        </div>
      )}
      <Steer session={session} taken={live.taken} />
    </div>
  );
}

interface ToolCall {
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
}

function Message({ entry }: { readonly entry: Entry }) {
  const { role, content, createdAt } = entry;
  const fields = typeof content === "object" && content !== null ? (content as Record<string, unknown>) : {};
  const text =
    typeof content === "string" ? content : typeof fields["text"] === "string" ? fields["text"] : undefined;
  const calls = Array.isArray(fields["toolCalls"]) ? (fields["toolCalls"] as readonly ToolCall[]) : [];
  const subAgentCall = subAgentCallOf(content);
  const indent = subAgentCall === undefined ? "" : "ml-6 border-l-4";
  if (role === "tool") {
    const isError = fields["isError"] === true;
    return (
      <details className={`rounded-md border border-line bg-panel px-3 py-1.5 ${indent}`} open={isError}>
        <summary className={isError ? "text-bad" : "text-soft"}>
          {subAgentCall === undefined ? "" : "sub-agent: "}
          {isError ? "" : "result of "}
          <span className="font-mono">
            {brief(typeof fields["name"] === "string" ? fields["name"] : "tool", 80)}
          </span>
          {isError ? " failed" : ""}
          <span className="ml-2 text-soft">{brief((text ?? "").trimStart().split("\n")[0] ?? "", 100)}</span>
        </summary>
        <ScrollBox label="Result">
          <LongText text={text ?? json(content)} />
        </ScrollBox>
      </details>
    );
  }
  const plan = planOf(role, content);
  const isPerson = role === "user";
  return (
    <article
      aria-label={role}
      className={`rounded-lg px-4 py-3 ${isPerson ? "ml-6 bg-raised sm:ml-24" : `border border-line bg-panel ${indent}`}`}
    >
      <header className="mb-1 flex justify-between text-xs text-soft">
        <span className="font-semibold" title={subAgentCall}>
          {shown(role)}
          {subAgentCall === undefined ? "" : " (sub-agent)"}
        </span>
        <time title={dateText(createdAt)}>{dateText(createdAt)}</time>
      </header>
      {plan !== undefined ? (
        <LongText text={plan.map(stepText).join("\n")} />
      ) : text === undefined ? (
        <LongText text={json(content)} />
      ) : text === "" ? null : (
        <LongText text={text} isMarkdown />
      )}
      {calls.map(({ id, name, input }, at) => (
        <details key={id ?? at} className="mt-2 rounded-md bg-raised px-3 py-1">
          <summary className="wrap-anywhere">
            <span className="text-soft">calls</span> <span className="font-mono">{shown(String(name))}</span>
            <span className="ml-2 font-mono text-xs text-soft">{brief(JSON.stringify(input) ?? "", 90)}</span>
          </summary>
          <ScrollBox label={`Input of ${shown(String(name))}`}>
            <CallInput input={input} />
          </ScrollBox>
        </details>
      ))}
    </article>
  );
}

/** The input of a call; of an edit the lines that go and the lines that come. */
function CallInput({ input }: { readonly input: unknown }) {
  const { oldText, newText, ...others } = (input ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof oldText !== "string" || typeof newText !== "string") return <LongText text={json(input)} />;
  return (
    <>
      <LongText text={json(others)} />
      <div className="exact mt-2">
        <DiffText text={editLines(oldText, newText)} />
      </div>
    </>
  );
}

function editLines(before: string, after: string): string {
  const lines = (text: string, mark: string): readonly string[] =>
    shown(text)
      .slice(0, EDIT_CHARS)
      .split("\n")
      .map((line) => mark + line);
  return [...lines(before, "-"), ...lines(after, "+")].join("\n");
}

const EDIT_CHARS = 20_000;

/** The signals by which a conversational agent hears a person: the next turn, or a word during one. */
function signalFor({ waits }: Session): typeof NEXT_INPUT | "steer" {
  return waits.some(({ type, name }) => type === "signal" && name === NEXT_INPUT) ? NEXT_INPUT : "steer";
}

function Steer({ session, taken }: { readonly session: Session; readonly taken: ReadonlySet<string> }) {
  const [text, setText] = useDraft(`message to ${session.sessionId}`);
  const outbox = useOutbox(session.sessionId);
  const messages = useSyncExternalStore(outbox.subscribe, () => outbox.messages);
  const name = signalFor(session);
  const hasEnded = isEnded(session);
  const send = (event?: FormEvent): void => {
    event?.preventDefault();
    if (text.trim() === "" || hasEnded) return;
    outbox.send(text, name);
    setText("");
  };
  const takeBack = (key: string): void => {
    const back = outbox.takeBack(key);
    setText(text === "" ? back : `${back}\n${text}`);
  };
  if (hasEnded && text === "" && messages.every(({ state }) => state === "stored")) return null;
  return (
    <form onSubmit={send} className="border-t border-line bg-panel p-3">
      <Outgoing
        messages={messages}
        taken={taken}
        onSendAgain={(key) => outbox.sendAgain(key)}
        onTakeBack={takeBack}
      />
      <div className="mx-auto flex max-w-4xl gap-2">
        <textarea
          aria-label="Message to the agent"
          rows={1}
          value={text}
          placeholder={name === NEXT_INPUT ? "Your next message" : "Steer the agent while it works"}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            // Enter that ends the writing of a character, as in Japanese, sends nothing.
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            if (!event.repeat) send();
          }}
          className="min-h-9 flex-1 resize-y rounded-md border border-line bg-ground px-3 py-1.5"
        />
        <Button type="submit" kind="main" isDisabled={hasEnded || text.trim() === ""}>
          Send
        </Button>
      </div>
      {hasEnded ? (
        <p role="status" className="mx-auto max-w-4xl pt-1 text-sm text-warn">
          The session has ended and takes no message. Copy your text if you need it.
        </p>
      ) : null}
    </form>
  );
}

/** The messages that the agent has not taken, and the last one. */
function Outgoing(props: {
  readonly messages: readonly OutboxMessage[];
  readonly taken: ReadonlySet<string>;
  readonly onSendAgain: (key: string) => void;
  readonly onTakeBack: (key: string) => void;
}) {
  const { messages, taken, onSendAgain, onTakeBack } = props;
  const last = messages.findLast(({ state }) => state === "stored");
  const isTaken = ({ signalId }: OutboxMessage): boolean => signalId !== undefined && taken.has(signalId);
  const shownMessages = messages.filter(
    (message) => message === last || (message.state !== "taken_back" && !isTaken(message)),
  );
  return (
    <div role="status" aria-label="Sent messages">
      <ul className="mx-auto max-w-4xl text-sm text-soft">
        {shownMessages.map((message) => {
          const { key, text, state, error } = message;
          return (
            <li key={key} className="flex flex-wrap items-center gap-x-3 gap-y-1 pb-1.5">
              <span className="min-w-0 truncate text-text">{brief(text, 80)}</span>
              <span className={state === "unsent" ? "text-bad" : error === undefined ? "" : "text-warn"}>
                {state === "stored"
                  ? isTaken(message)
                    ? "The agent has taken it."
                    : "Stored. The agent takes it when it next looks."
                  : state === "waiting"
                    ? "Waits for the message before it."
                    : state === "sending"
                      ? error === undefined
                        ? "Being sent…"
                        : "No answer yet. The page sends it again, and it is stored once."
                      : error === undefined
                        ? "Not known to be stored."
                        : shown(
                            [error.message, error instanceof ApiError ? error.fix : ""]
                              .filter(Boolean)
                              .join(": "),
                          )}
              </span>
              {state === "unsent" ? <Button onClick={() => onSendAgain(key)}>Send again</Button> : null}
              {state === "unsent" || error !== undefined ? (
                <Button onClick={() => onTakeBack(key)}>Take back</Button>
              ) : null}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
