// `useAnswering`: the answer of a person to one item of the inbox, from the text that is typed to the result
// of the request.

import { useQueryClient } from "@tanstack/react-query";
import { useState, type RefObject } from "react";
import { call } from "../../api/client.ts";
import type { OpenItem } from "../../api/open-items.ts";
import { sessionPath, useDraft, useRequest } from "../../parts/use-session.ts";

export interface AnswerProps {
  readonly item: OpenItem;
  readonly card: RefObject<HTMLElement | null>;
  /** Whether all of the item's text was shown. */
  readonly isSeen: boolean;
  /** Whether the card has stood still for a moment. */
  readonly isAtRest: boolean;
  readonly onUnpaused: () => void;
  readonly onAnswered: () => void;
}

export type Answering = ReturnType<typeof useAnswering>;

export function useAnswering({ item, card, isSeen, isAtRest, onUnpaused, onAnswered }: AnswerProps) {
  const { wait, sessionId, kind } = item;
  const [text, setText] = useDraft(`answer to ${item.id}`);
  const { run, isBusy, error } = useRequest();
  const [done, setDone] = useState<string>();
  const [isRefused, setRefused] = useState(false);
  const queries = useQueryClient();
  /** @returns whether it is done. */
  const act = async (said: string, request: () => Promise<unknown>): Promise<boolean> => {
    if (isBusy || done !== undefined || !isAtRest) return false; // inbox-answer-1, inbox-answer-3.
    if (!(await run(request))) return false;
    setText("");
    const hasFocus = card.current?.contains(document.activeElement) === true;
    setDone(said);
    if (hasFocus) onAnswered();
    if (kind === "pause") onUnpaused();
    void queries.invalidateQueries({ queryKey: ["inbox"] });
    return true;
  };
  const answer = (said: string, value: unknown): void => {
    const body = { question: String(wait?.id), answer: value };
    void act(said, () => call("POST", sessionPath(sessionId, "answer"), body));
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
