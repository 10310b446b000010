import type { Project } from "./holdfast-process.ts";

/** Writes a script of the project, whose one parameter is a file. `fields` replace those of its manifest. */
export function writeScript(project: Project, name: string, code: string, fields: object = {}): void {
  const manifest = {
    name,
    description: `Does ${name}.`,
    script_file: "main.sh",
    parameters_schema: { properties: { file: { type: "string" } }, required: ["file"] },
    ...fields,
  };
  project.write(`.holdfast/scripts/${name}/script.json`, JSON.stringify(manifest));
  project.write(`.holdfast/scripts/${name}/main.sh`, `${code}\n`);
}
