// The agent files of a coordinator whose current version no runner offers, with the reasons, for admins.

import { useQuery } from "@tanstack/react-query";
import { unofferedAgents, type PlainItem } from "@holdfast/proto/view";
import { call } from "../../api/client.ts";
import { THING } from "../../design/surfaces.tsx";
import { Problem } from "../../parts/parts.tsx";
import { shown } from "../../parts/text.ts";
import { REFRESH_MS, useRunners } from "../../api/use-runners.ts";
import { useAbout } from "../../parts/use-session.ts";

export function UnofferedAgents() {
  const isAdmin = useAbout()?.kind === "admin";
  const runners = useRunners(isAdmin);
  const catalogue = useQuery({
    queryKey: ["catalogue", "agent"],
    queryFn: () => call<{ readonly items?: readonly PlainItem[] }>("GET", "/v1/catalogue?kind=agent"),
    enabled: isAdmin,
    refetchInterval: REFRESH_MS,
  });
  const error = runners.error ?? catalogue.error;
  if (runners.data === undefined || catalogue.data === undefined)
    return error === null ? null : <Problem error={error} />;
  const agents = unofferedAgents(catalogue.data.items ?? [], runners.data.runners);
  if (agents.length === 0) return null;
  return (
    <section aria-label="Pushed agents that no runner offers" className="pt-2">
      <h2 className="mb-2 font-semibold">Pushed agents that no runner offers in their current version</h2>
      <ul className="space-y-3">
        {agents.map(({ name, reasons }) => (
          <li key={name} className={THING}>
            <h3 className="font-semibold">{shown(name)}</h3>
            {reasons.map((reason) => (
              <p key={reason} className="mt-1 break-words text-soft">
                {shown(reason)}
              </p>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}
