// The command palette: every screen, and sessions by their ids, agents and texts, from the keyboard.
//
// Sessions that are found stand below the screens, so that a late answer changes no choice above them.

import { STATUSES } from "@holdfast/proto/view";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { call } from "../api/client.ts";
import { listPath } from "../api/session-list.ts";
import type { Session, SessionPage } from "../api/types.ts";
import { SCREENS } from "./all-screens.ts";
import { brief, statusText } from "./text.ts";

interface Choice {
  readonly name: string;
  readonly go: () => void;
}

const FOUND = 8;
const SEARCH_CHARS_MIN = 2;
const TYPING_MS = 150;

export const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setText("");
      setAt(0);
      if (dialog.current?.open === false) dialog.current.showModal();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const choices = [
    ...screensFor(text, navigate),
    ...sessionsFor(text, useFoundSessions(text.trim()), navigate),
  ];
  const take = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    dialog.current?.close();
    choice.go();
  };
  return (
    <dialog
      ref={dialog}
      aria-label="Go to"
      onClose={() => setText("")}
      className="mx-auto mt-24 w-full max-w-screen rounded-lg border border-line bg-panel text-text shadow-xl backdrop:bg-veil max-sm:mt-4 sm:max-w-xl"
    >
      <input
        role="combobox"
        aria-expanded
        aria-controls="choices"
        aria-activedescendant={`choice-${at}`}
        aria-label="Go to"
        autoFocus
        spellCheck={false}
        value={text}
        placeholder="A screen, a status, or a session by its id, agent or text"
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(choices.length - 1, at + 1));
          else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
          else if (event.key === "Enter") take(choices[at]);
          else return;
          event.preventDefault();
        }}
        className="w-full border-b border-line bg-panel px-4 py-3 text-lg outline-none"
      />
      <ul id="choices" role="listbox" aria-label="Choices" className="max-h-72 overflow-auto p-1">
        {choices.map((choice, index) => (
          <li
            key={`${index} ${choice.name}`}
            id={`choice-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => take(choice)}
            className={`cursor-pointer truncate rounded-md px-3 py-2 ${index === at ? "bg-raised text-accent" : ""}`}
          >
            {choice.name}
          </li>
        ))}
      </ul>
    </dialog>
  );
}

type Navigate = ReturnType<typeof useNavigate>;

/** Where a choice of the palette has other words than the navigation. */
const WORDS: Readonly<Record<string, string>> = { "/sessions": "All sessions", "/start": "Start a session" };

function screensFor(text: string, navigate: Navigate): readonly Choice[] {
  const screens: readonly Choice[] = [
    ...SCREENS.map(({ name, path }) => ({
      name: WORDS[path] ?? name,
      go: () => void navigate({ to: path }),
    })),
    ...STATUSES.map((status) => ({
      name: `Sessions that are ${status.replace("_", " ")}`,
      go: () => void navigate({ to: "/sessions", search: { status } }),
    })),
  ];
  return screens.filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase()));
}

/** The newest sessions with a text in their id, title, agent, input, output, question or error. */
function useFoundSessions(text: string): readonly Session[] {
  const [wanted, setWanted] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setWanted(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const isAsked = wanted.length >= SEARCH_CHARS_MIN;
  const { data } = useQuery({
    queryKey: ["palette", wanted],
    queryFn: () => call<SessionPage>("GET", listPath({ text: wanted, limit: FOUND })),
    enabled: isAsked,
    placeholderData: keepPreviousData,
  });
  return isAsked && text !== "" ? (data?.sessions ?? []) : [];
}

function sessionsFor(text: string, found: readonly Session[], navigate: Navigate): readonly Choice[] {
  const wanted = text.trim();
  if (wanted.length < SEARCH_CHARS_MIN) return [];
  const go = (id: string) => () => void navigate({ to: "/sessions/$id", params: { id } });
  const agents = [...new Set(found.map(({ agent }) => agent))].filter((agent) =>
    agent.toLowerCase().includes(wanted.toLowerCase()),
  );
  // The search reads only so many sessions. An id is known to be one by its digits.
  const isId = SESSION_ID.test(wanted) && /\d/.test(wanted);
  return [
    ...(isId ? [{ name: `Session ${wanted}`, go: go(wanted) }] : []),
    {
      name: `Sessions with “${brief(wanted, 60)}”`,
      go: () => void navigate({ to: "/sessions", search: { text: wanted } }),
    },
    ...agents.map((agent) => ({
      name: `Sessions of agent ${brief(agent, 80)}`,
      go: () => void navigate({ to: "/sessions", search: { agent } }),
    })),
    ...found
      .filter(({ sessionId }) => !isId || sessionId !== wanted)
      .map((session) => ({ name: sessionName(session), go: go(session.sessionId) })),
  ];
}

function sessionName(session: Session): string {
  const { agent, title, sessionId } = session;
  const about = title === undefined ? "" : `: ${brief(title)}`;
  return `${brief(agent, 40)}${about} · ${statusText(session)} · ${sessionId}`;
}
