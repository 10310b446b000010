// `projectRulesOf`: the permission rules of a project, as the agents that run here read and add to them. Denials
// of its user for a project above it hold, too.

import { dirname, join } from "node:path";
import {
  addProjectRule,
  layersOf,
  readProjectRules,
  type AgentPlaces,
  type PermissionRule,
  type ProjectRules,
} from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";

/** The file of the permission rules that the user gave for projects. */
export function rulesFile({ trustFile }: Pick<AgentPlaces, "trustFile">): string {
  return join(dirname(trustFile), "permission-rules.json");
}

/** @param user the person whose answers add rules. */
export function projectRulesOf(places: AgentPlaces, user: string): ProjectRules {
  if (places.servesOthers === true) return NO_RULES;
  const rulesOf = (project: string): readonly PermissionRule[] =>
    readProjectRules(rulesFile(places), project).map(({ decision, tool, pattern }) => ({
      decision,
      tool,
      pattern,
    }));
  return {
    read: () =>
      layersOf(places).flatMap(({ project }) =>
        rulesOf(project).filter(({ decision }) => project === places.project || decision === "deny"),
      ),
    add: (rule, session) =>
      addProjectRule(rulesFile(places), places.project, {
        ...rule,
        session,
        principal: user,
        at: Date.now(),
      }),
  };
}

/** An answer of one person must not decide for the sessions of another one. */
const NO_RULES: ProjectRules = {
  read: () => [],
  add: () => {
    throw new HoldfastError("policy_denied", "a runner of a coordinator keeps no rules of a project");
  },
};
