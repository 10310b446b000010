// `useSavedViews`: filters that a person has kept under a name, in this browser. They hold no data of sessions.

import { useState } from "react";
import { readSessionsSearch, type SessionsSearch } from "./sessions-search.ts";

export interface SavedView {
  readonly name: string;
  readonly search: SessionsSearch;
}

const KEY = "holdfast-views";
const VIEWS_MAX = 20;
const NAME_CHARS = 40;

export function useSavedViews() {
  const [views, setViews] = useState(() => readViews(localStorage.getItem(KEY)));
  const keep = (next: readonly SavedView[]): void => {
    setViews(next);
    localStorage.setItem(KEY, JSON.stringify(next));
  };
  return {
    views,
    save: (name: string, search: SessionsSearch) => keep(withView(views, { name, search })),
    remove: (name: string) => keep(views.filter((view) => view.name !== name)),
  };
}

/** A view of the same name is replaced, and beyond `VIEWS_MAX` the oldest one goes. */
export function withView(views: readonly SavedView[], view: SavedView): readonly SavedView[] {
  const name = view.name.trim().slice(0, NAME_CHARS);
  if (name === "") return views;
  return [...views.filter((other) => other.name !== name), { ...view, name }].slice(-VIEWS_MAX);
}

/** Views that another version of the page has stored, or that somebody has edited, are read as far as they are views. */
export function readViews(stored: string | null): readonly SavedView[] {
  let found: unknown;
  try {
    found = JSON.parse(stored ?? "[]");
  } catch {
    found = [];
  }
  const views = Array.isArray(found) ? (found as readonly Partial<Record<keyof SavedView, unknown>>[]) : [];
  return views.flatMap((view) => {
    const { name, search } = view ?? {};
    return typeof name === "string" && typeof search === "object" && search !== null
      ? [{ name: name.slice(0, NAME_CHARS), search: readSessionsSearch(search as Record<string, unknown>) }]
      : [];
  });
}
