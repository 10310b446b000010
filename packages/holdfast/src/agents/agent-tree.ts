// `everyAgent`: an agent with all the agents that it may ask for, as their definitions declare them.

import type { Agent } from "@holdfast/runtime";

/** An agent and all agents below it, each once. */
export function everyAgent(agent: Agent, seen = new Set<Agent>()): ReadonlySet<Agent> {
  if (seen.has(agent)) return seen;
  seen.add(agent);
  for (const child of agent.agents) everyAgent(child, seen);
  return seen;
}

/** Whether a task of an agent, or of one below it, declares a cost. */
export function declaresCost(agent: Agent): boolean {
  return [...everyAgent(agent)].some(({ tasks }) => tasks.some(({ cost }) => cost !== undefined));
}
