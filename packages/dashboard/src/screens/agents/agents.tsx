// The agents that can be started here: their purpose, their input, and the runners that offer them. Beneath
// are the pushed agents that no runner offers.

import { Link } from "@tanstack/react-router";
import type { StartableAgent } from "../../api/types.ts";
import { LongText } from "../../parts/long-text.tsx";
import { Command, Empty, Problem, Reading, ScrollBox } from "../../parts/parts.tsx";
import { json, shown } from "../../parts/text.ts";
import { REFRESH_MS } from "../../api/use-runners.ts";
import { useAbout } from "../../parts/use-session.ts";
import { AgentFilesScreen } from "./agent-files.tsx";
import { useAgents } from "./start.tsx";
import { UnofferedAgents } from "./unoffered-agents.tsx";

export function AgentsScreen() {
  const isLocal = useAbout()?.isLocal;
  const { data, error } = useAgents(isLocal === false, REFRESH_MS);
  if (isLocal === true) return <AgentFilesScreen />;
  if (error !== null && data === undefined) return <Problem error={error} />;
  if (data === undefined) return <Reading what="the agents" />;
  const { agents = [] } = data;
  return (
    <div className="h-full overflow-auto" tabIndex={0} role="region" aria-label="Agents">
      <h1 className="sr-only">Agents</h1>
      {agents.length === 0 ? (
        <Empty title="No runner offers an agent">
          <p>
            A runner offers the agents of its files:{" "}
            <Command>holdfast runner --agents FILE --url URL</Command>.
          </p>
        </Empty>
      ) : (
        <ul className="mx-auto max-w-4xl space-y-3 p-3">
          {agents.map((agent) => (
            <li key={agent.name}>
              <AgentCard agent={agent} />
            </li>
          ))}
        </ul>
      )}
      <UnofferedAgents />
    </div>
  );
}

function AgentCard({ agent }: { readonly agent: StartableAgent }) {
  const { name, versions = [], runners, description, inputSchema } = agent;
  const offered = runners === 1 ? "offered by one runner" : `offered by ${runners} runners`;
  return (
    <article aria-label={shown(name)} className="rounded-lg border border-line bg-panel p-4">
      <header className="flex flex-wrap items-baseline gap-x-3">
        <h2 className="font-semibold">{shown(name)}</h2>
        <span className="text-soft">
          {versions.length === 0 ? "any version" : `version ${versions.map(shown).join(", ")}`}, {offered}
        </span>
        <span className="ml-auto flex gap-4">
          <Link to="/sessions" search={{ agent: name }} className="text-accent underline">
            its sessions
          </Link>
          <Link to="/start" search={{ agent: name }} className="text-accent underline">
            start
          </Link>
        </span>
      </header>
      {description === undefined ? null : (
        <div className="mt-2">
          <LongText text={description} isMarkdown />
        </div>
      )}
      {inputSchema === undefined ? (
        <p className="mt-2 text-soft">It does not say which input it takes.</p>
      ) : (
        <details className="mt-2">
          <summary className="text-soft">Schema of its input</summary>
          <ScrollBox label={`Schema of the input of ${shown(name)}`}>
            <LongText text={json(inputSchema)} />
          </ScrollBox>
        </details>
      )}
    </article>
  );
}
