// The command palette: every screen, and any session by its id, from the keyboard.

import { STATUSES } from "@holdfast/proto/view";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { SYSTEM_SCREENS } from "./system-screens.ts";

interface Choice {
  readonly name: string;
  readonly go: () => void;
}

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
  const choices = choicesFor(text, navigate);
  const take = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    dialog.current?.close();
    choice.go();
  };
  return (
    <dialog
      ref={dialog}
      aria-label="Go to"
      className="mx-auto mt-24 w-[min(32rem,92vw)] rounded-lg border border-line bg-panel text-text shadow-xl backdrop:bg-black/40"
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
        placeholder="A screen, a status, or the id of a session"
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
        className="w-full border-b border-line bg-panel px-4 py-3 outline-none"
      />
      <ul id="choices" role="listbox" aria-label="Choices" className="max-h-72 overflow-auto p-1">
        {choices.map((choice, index) => (
          <li
            key={choice.name}
            id={`choice-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => take(choice)}
            className={`cursor-pointer rounded px-3 py-1.5 ${index === at ? "bg-raised text-accent" : ""}`}
          >
            {choice.name}
          </li>
        ))}
      </ul>
    </dialog>
  );
}

function choicesFor(text: string, navigate: ReturnType<typeof useNavigate>): readonly Choice[] {
  const wanted = text.trim();
  const screens: readonly Choice[] = [
    { name: "Inbox", go: () => void navigate({ to: "/" }) },
    { name: "All sessions", go: () => void navigate({ to: "/sessions" }) },
    { name: "Start a session", go: () => void navigate({ to: "/start" }) },
    { name: "Agents", go: () => void navigate({ to: "/agents" }) },
    ...SYSTEM_SCREENS.map(({ name, path }) => ({ name, go: () => void navigate({ to: path }) })),
    ...STATUSES.map((status) => ({
      name: `Sessions that are ${status.replace("_", " ")}`,
      go: () => void navigate({ to: "/sessions", search: { status } }),
    })),
  ];
  const found = screens.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
  // An id has a digit, and a screen's name has none.
  if (!SESSION_ID.test(wanted) || !/\d/.test(wanted)) return found;
  return [
    ...found,
    { name: `Session ${wanted}`, go: () => void navigate({ to: "/sessions/$id", params: { id: wanted } }) },
    {
      name: `Sessions of agent ${wanted}`,
      go: () => void navigate({ to: "/sessions", search: { agent: wanted } }),
    },
  ];
}
