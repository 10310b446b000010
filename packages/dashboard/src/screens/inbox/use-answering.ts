// `useAnswering`: the answer of a person to one item of the inbox, from the text that is typed to the result
// of the request.

import { useQueryClient } from "@tanstack/react-query";
import { useState, type RefObject } from "react";
import { ApiError, call } from "../../api/client.ts";
import type { OpenItem } from "../../api/open-items.ts";
import { sessionPath, useDraft, useOwnName, useRequest } from "../../parts/use-session.ts";
import { receiptOf, type Notice } from "./notices.tsx";

export interface AnswerProps {
  readonly item: OpenItem;
  readonly card: RefObject<HTMLElement | null>;
  /** Whether all of the item's text was shown. */
  readonly isSeen: boolean;
  /** Whether the card has stood still for a moment. */
  readonly isAtRest: boolean;
  /** Called with what a person must know after the item is gone, such as the receipt of their answer. */
  readonly onNotice: (notice: Notice) => void;
  readonly onAnswered: () => void;
}

export type Answering = ReturnType<typeof useAnswering>;

export function useAnswering({ item, card, isSeen, isAtRest, onNotice, onAnswered }: AnswerProps) {
  const { wait, sessionId, kind } = item;
  const [text, setText] = useDraft(`answer to ${item.id}`);
  const { run, isBusy, error } = useRequest();
  const [done, setDone] = useState<string>();
  const [isRefused, setRefused] = useState(false);
  const who = useOwnName();
  const queries = useQueryClient();
  /** The item of an answer that came too late goes with its question, and an error in it, too. */
  const keepRefusal = (thrown: unknown): never => {
    if (thrown instanceof ApiError && [404, 409].includes(thrown.status))
      onNotice({ sessionId, title: item.session.title, text: `${thrown.message}.` });
    throw thrown;
  };
  /** @param answered the item as it was answered. @returns whether it is done. */
  const act = async (said: string, request: () => Promise<unknown>, answered = item): Promise<boolean> => {
    if (isBusy || done !== undefined || !isAtRest) return false; // inbox-answer-1, inbox-answer-3.
    if (!(await run(() => request().catch(keepRefusal)))) return false;
    setText("");
    const hasFocus = card.current?.contains(document.activeElement) === true;
    setDone(said);
    if (hasFocus) onAnswered();
    onNotice(
      kind === "pause"
        ? { sessionId, title: item.session.title, text: "It is unpaused.", isToContinue: true }
        : receiptOf(said, who, answered),
    );
    void queries.invalidateQueries({ queryKey: ["inbox"] });
    return true;
  };
  const answer = (said: string, value: unknown, answered?: OpenItem): void => {
    const body = { question: String(wait?.id), answer: value };
    void act(said, () => call("POST", sessionPath(sessionId, "answer"), body), answered);
  };
  /** inbox-answer-3. */
  const ifSeen = (work: () => void) => (): void => {
    setRefused(!isSeen);
    if (isSeen) work();
  };
  const takesNoAnswer = isBusy || !isAtRest;
  return {
    text,
    setText,
    isBusy,
    error,
    done,
    isRefused,
    act,
    answer,
    ifSeen,
    takesNoAnswer,
    takesNoApproval: takesNoAnswer || !isSeen,
  };
}
