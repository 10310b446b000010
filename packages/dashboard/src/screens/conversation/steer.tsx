// The box for messages to the agent of a session, and what became of those that were sent.
//
// A message is stored before the page says so. The page says what became of each message, by the id of its
// signal: stored, then taken.

import { NEXT_INPUT } from "@holdfast/core";
import { useSyncExternalStore, type FormEvent } from "react";
import { ApiError } from "../../api/client.ts";
import type { OutboxMessage } from "../../api/outbox.ts";
import { isEnded, type Session } from "../../api/types.ts";
import { Button } from "../../parts/parts.tsx";
import { brief, shown } from "../../parts/text.ts";
import { useDraft, useOutbox } from "../../parts/use-session.ts";

/** The signals by which a conversational agent hears a person: the next turn, or a word during one. */
export function signalFor({ waits }: Session): typeof NEXT_INPUT | "steer" {
  return waits.some(({ type, name }) => type === "signal" && name === NEXT_INPUT) ? NEXT_INPUT : "steer";
}

export function Steer({
  session,
  taken,
}: {
  readonly session: Session;
  readonly taken: ReadonlySet<string>;
}) {
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
