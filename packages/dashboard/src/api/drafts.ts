// `readDraft`, `writeDraft`: texts that a person has written on the page and that the server does not have
// yet.
//
//   - A text is kept as long as the tab is open. A change of screens, a list that is read again and a reload
//     do not erase it.
//   - A sign-out removes all of them, because the next person at this tab may be another.

const PREFIX = "holdfast-draft ";

/** @returns the text of this name, or an empty one. */
export function readDraft(name: string): string {
  return sessionStorage.getItem(PREFIX + name) ?? "";
}

/** Keeps a text; an empty one is removed. A text that the browser has no room for is kept only by its field. */
export function writeDraft(name: string, text: string): void {
  try {
    if (text === "") sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, text);
  } catch {
    sessionStorage.removeItem(PREFIX + name); // An older text must not come back in its place.
  }
}

export function removeDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}
