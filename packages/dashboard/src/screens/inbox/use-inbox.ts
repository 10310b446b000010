// `useInbox`: everything that waits for a person. It is read once for all screens, because its count is in
// the title.

import { useQuery } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { InboxReader } from "../../api/open-items.ts";
import { whyText } from "../../parts/text.ts";
import { useAbout } from "../../parts/use-session.ts";

/** Each sign-in has its own, because it remembers the questions of one person. */
export const InboxContext = createContext(new InboxReader());

export function useInbox() {
  const about = useAbout();
  const isLocal = about?.isLocal ?? true;
  const reader = useContext(InboxContext);
  return useQuery({
    queryKey: ["inbox", isLocal],
    queryFn: () => reader.read((session) => whyText(session, isLocal), isLocal),
    enabled: about !== undefined,
  });
}
