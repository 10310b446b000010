// `exampleProject`: a project with the agents of an example, as a user has who copied it.

import { copyFileSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Project } from "./holdfast-process.ts";

/** A package that examples need and that does not come with Holdfast. */
const ZOD = fileURLToPath(new URL("../../../../node_modules/zod", import.meta.url));

/** @param url of the example's test, which stands beside its files. */
export function exampleProject(url: string): Project {
  const project = new Project();
  const folder = fileURLToPath(new URL(".", url));
  for (const file of readdirSync(folder))
    if (file.endsWith(".ts") && !file.endsWith(".test.ts"))
      copyFileSync(join(folder, file), project.path(file));
  mkdirSync(project.path("node_modules"));
  symlinkSync(ZOD, project.path("node_modules/zod"));
  return project;
}
