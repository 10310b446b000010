// The agents that can be started here: their purpose, their input, and the runners that offer them. Beneath
// are the pushed agents that no runner offers. Each says what it did in the last day.

import { costText, NO_COST } from "@holdfast/proto/view";
import { Link } from "@tanstack/react-router";
import type { StartableAgent } from "../../api/types.ts";
import { LongText } from "../../parts/long-text.tsx";
import { Chip, THING } from "../../design/surfaces.tsx";
import { Command, Empty, Problem, Reading, ScreenBody, ScrollBox } from "../../parts/parts.tsx";
import { count, json, shown } from "../../parts/text.ts";
import { REFRESH_MS } from "../../api/use-runners.ts";
import { useAbout } from "../../parts/use-session.ts";
import { useAgentStats, type AgentStats } from "./agent-stats.ts";
import { AgentFilesScreen } from "./agent-files.tsx";
import { useAgents } from "./start.tsx";
import { UnofferedAgents } from "./unoffered-agents.tsx";

export function AgentsScreen() {
  const isLocal = useAbout()?.isLocal;
  const { data, error } = useAgents(isLocal === false, REFRESH_MS);
  const stats = useAgentStats(isLocal === false);
  if (isLocal === true) return <AgentFilesScreen />;
  if (error !== null && data === undefined) return <Problem error={error} />;
  if (data === undefined) return <Reading what="the agents" />;
  const { agents = [] } = data;
  return (
    <ScreenBody
      title="Agents"
      about={
        stats.data === undefined
          ? ""
          : `runs, failures and costs of the last day${stats.data.isCut ? ", of the newest 500 sessions" : ""}`
      }
    >
      {agents.length === 0 ? (
        <Empty title="No runner offers an agent">
          <p>
            A runner offers the agents of its files:{" "}
            <Command>holdfast runner --agents FILE --url URL</Command>.
          </p>
        </Empty>
      ) : (
        <ul className="space-y-3">
          {agents.map((agent) => (
            <li key={agent.name}>
              <AgentCard
                agent={agent}
                stats={stats.data === undefined ? undefined : (stats.data.by.get(agent.name) ?? NO_RUNS)}
              />
            </li>
          ))}
        </ul>
      )}
      <UnofferedAgents />
    </ScreenBody>
  );
}

const NO_RUNS: AgentStats = { runs: 0, failed: 0, cost: NO_COST };

function AgentCard(props: { readonly agent: StartableAgent; readonly stats: AgentStats | undefined }) {
  const { agent, stats } = props;
  const { name, versions = [], runners, description, inputSchema } = agent;
  const offered = runners === 1 ? "offered by one runner" : `offered by ${runners} runners`;
  return (
    <article aria-label={shown(name)} className={THING}>
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="font-semibold">{shown(name)}</h2>
        {stats === undefined ? null : <Stats name={name} stats={stats} />}
        <span className="ml-auto flex items-center gap-4">
          <Link to="/sessions" search={{ agent: name }} className="text-accent underline">
            its sessions
          </Link>
          <Link to="/start" search={{ agent: name }} className="text-accent underline">
            start
          </Link>
        </span>
      </header>
      <p className="text-sm text-soft">
        {versions.length === 0 ? "any version" : `version ${versions.map(shown).join(", ")}`}, {offered}
      </p>
      {description === undefined ? null : (
        <div className="mt-2">
          <LongText text={description} isMarkdown />
        </div>
      )}
      {inputSchema === undefined ? null : (
        <details className="mt-2">
          <summary className="text-sm text-soft">Schema of its input</summary>
          <ScrollBox label={`Schema of the input of ${shown(name)}`}>
            <LongText text={json(inputSchema)} />
          </ScrollBox>
        </details>
      )}
    </article>
  );
}

function Stats({ name, stats }: { readonly name: string; readonly stats: AgentStats }) {
  const { runs, failed, cost } = stats;
  return (
    <span className="flex flex-wrap gap-1.5">
      <Chip>{runs === 0 ? "no run" : count(runs, "run")}</Chip>
      {failed === 0 ? null : (
        <Link to="/sessions" search={{ agent: name, status: "failed" }}>
          <Chip tone="bad" icon="cross">
            {failed.toLocaleString()} failed
          </Chip>
        </Link>
      )}
      {cost.calls === 0 ? null : <Chip>{costText(cost)}</Chip>}
    </span>
  );
}
