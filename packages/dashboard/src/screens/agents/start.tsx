// Starts a session: the agents that can be started, and the form of the chosen one.
//
// The list of agents is read again under the hands of a person. The form stays that of its agent, also when
// no runner offers the agent for a moment.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useRef } from "react";
import { call } from "../../api/client.ts";
import { formOf } from "../../api/input-form.ts";
import type { StartableAgent, StartableAgents } from "../../api/types.ts";
import { LongText } from "../../parts/long-text.tsx";
import { ScreenHead } from "../../design/surfaces.tsx";
import { Command, Empty, Problem, Reading } from "../../parts/parts.tsx";
import { shown } from "../../parts/text.ts";
import { LIVE } from "../../parts/use-changes.ts";
import { useAbout } from "../../parts/use-session.ts";
import { FIELD, Labelled } from "./form-fields.tsx";
import { StartForm } from "./start-form.tsx";

export interface StartSearch {
  readonly agent?: string;
}

export function readStartSearch(search: Readonly<Record<string, unknown>>): StartSearch {
  const { agent } = search;
  return typeof agent === "string" && agent !== "" ? { agent: agent.slice(0, 200) } : {};
}

/** @param everyMs also reads at this interval, because registrations are no changes of sessions. */
export function useAgents(isEnabled: boolean, everyMs?: number) {
  return useQuery({
    queryKey: ["agents"],
    queryFn: () => call<StartableAgents>("GET", "/v1/agents"),
    enabled: isEnabled,
    meta: LIVE,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
  });
}

export function StartScreen() {
  const about = useAbout();
  const isLocal = about?.isLocal;
  const { data, error } = useAgents(isLocal === false);
  const { agent } = useSearch({ from: "/start" });
  const navigate = useNavigate({ from: "/start" });
  const shownBefore = useRef<StartableAgent>(undefined);
  if (isLocal === true)
    return (
      <Empty title="Sessions of this database start in a terminal">
        <p>
          <Command>holdfast run FILE</Command> starts one, and it appears here. The page of a coordinator also
          starts them: <Command>holdfast local start</Command>.
        </p>
      </Empty>
    );
  // A later read that fails takes nothing away that a person has written.
  if (error !== null && data === undefined) return <Problem error={error} />;
  if (data === undefined) return <Reading what="the agents" />;
  const { agents = [] } = data;
  const before = shownBefore.current;
  const wanted = agent ?? before?.name;
  const offered = agents.find(({ name }) => name === wanted);
  // The form stays that of its agent, also while no runner offers it.
  const chosen = offered ?? (before !== undefined && before.name === wanted ? before : agents[0]);
  shownBefore.current = chosen;
  if (chosen === undefined)
    return (
      <Empty title="No runner offers an agent">
        <p>
          A runner offers the agents of its files: <Command>holdfast runner --agents FILE --url URL</Command>.
        </p>
        {about?.kind === "admin" ? (
          <p className="mt-3">
            <Link to="/agents" className="text-accent underline">
              Agents
            </Link>{" "}
            says why no runner offers an agent that was pushed.
          </p>
        ) : null}
      </Empty>
    );
  return (
    <div className="h-full overflow-auto">
      <div className="mx-auto max-w-2xl space-y-4 p-4">
        <ScreenHead title="Start a session" />
        <Labelled label="Agent" id="agent">
          <select
            id="agent"
            autoFocus
            value={chosen.name}
            onChange={(event) => void navigate({ search: { agent: event.target.value }, replace: true })}
            className={FIELD}
          >
            {(agents.includes(chosen) ? agents : [chosen, ...agents]).map(({ name }) => (
              <option key={name} value={name}>
                {shown(name)}
              </option>
            ))}
          </select>
        </Labelled>
        {agents.includes(chosen) ? null : (
          <p role="status" className="text-warn">
            No runner offers {shown(chosen.name)} now. A session of it waits until one does.
          </p>
        )}
        {chosen.description === undefined ? null : <LongText text={chosen.description} isMarkdown />}
        <StartForm key={chosen.name} agent={chosen.name} form={formOf(chosen.inputSchema)} />
      </div>
    </div>
  );
}
