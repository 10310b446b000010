// Notifications of the browser about new items of the inbox.
//
//   - The browser asks for the permission only after a click on the button.
//   - A notification names the agents and the title, and no question: others may see the screen.
//   - It comes only while the page is hidden, and once for each item.

import { useEffect, useRef, useState } from "react";
import type { Inbox } from "../../api/open-items.ts";
import { Button } from "../../parts/parts.tsx";
import { brief } from "../../parts/text.ts";

const canNotify = (): boolean => "Notification" in globalThis;

export function NotifyButton() {
  const [permission, setPermission] = useState(() => (canNotify() ? Notification.permission : "denied"));
  if (permission !== "default") return null;
  return (
    <Button icon="bell" onClick={() => void Notification.requestPermission().then(setPermission)}>
      Notify me of new items
    </Button>
  );
}

/** @param open shows an item. */
export function useNotifications(inbox: Inbox | undefined, open: (id: string) => void): void {
  const known = useRef<ReadonlySet<string>>(undefined);
  useEffect(() => {
    if (inbox === undefined) return;
    const before = known.current;
    known.current = new Set(inbox.items.map(({ id }) => id));
    if (before === undefined || !document.hidden || !canNotify() || Notification.permission !== "granted")
      return;
    const fresh = inbox.items.filter(({ id }) => !before.has(id));
    const [first] = fresh;
    if (first === undefined) return;
    const about = first.title === undefined ? "" : ` (${brief(first.title)})`;
    const who =
      fresh.length === 1 ? `${brief(first.path.join(" > "), 80)}${about}` : `${fresh.length} sessions`;
    const notification = new Notification("Holdfast", {
      body: `${who} ${fresh.length === 1 ? "waits" : "wait"} for you`,
      tag: "holdfast-inbox",
    });
    notification.addEventListener("click", () => {
      focus();
      open(first.id);
      notification.close();
    });
  }, [inbox]);
}
