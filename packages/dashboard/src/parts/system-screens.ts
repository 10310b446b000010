// The screens about everything rather than about one session: their addresses, names and keys, for the
// navigation, the palette and the help.

export const SYSTEM_SCREENS = [
  { path: "/costs", name: "Costs", key: "C" },
  { path: "/fleet", name: "Fleet", key: "F" },
  { path: "/schedules", name: "Schedules", key: "S" },
  { path: "/audit", name: "Audit", key: "A" },
] as const;
