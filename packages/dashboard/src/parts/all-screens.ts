// `SCREENS`: the screens that are not about one session, with their addresses, names, keys and icons. The
// navigation, the palette and the help read them here.

import type { IconName } from "../design/icons.tsx";

interface NamedScreen {
  readonly path: string;
  readonly name: string;
  readonly key: string;
  readonly icon: IconName;
  /** Whether it stands at the lower edge of a narrow window. */
  readonly main: boolean;
}

export const SCREENS = [
  { path: "/", name: "Home", key: "h", icon: "home", main: true },
  { path: "/inbox", name: "Inbox", key: "i", icon: "inbox", main: true },
  { path: "/sessions", name: "Sessions", key: "s", icon: "sessions", main: true },
  { path: "/start", name: "Start", key: "n", icon: "start", main: true },
  { path: "/agents", name: "Agents", key: "g", icon: "agents", main: false },
  { path: "/costs", name: "Costs", key: "C", icon: "costs", main: false },
  { path: "/fleet", name: "Fleet", key: "F", icon: "fleet", main: false },
  { path: "/schedules", name: "Schedules", key: "S", icon: "schedules", main: false },
  { path: "/audit", name: "Audit", key: "A", icon: "audit", main: false },
] as const satisfies readonly NamedScreen[];
