// The agent files of a project: which are loaded, what becomes of each field, skills, and MCP servers with
// their sign-ins.

import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import type { AgentFiles, ReportedFile, ReportedServer } from "../../api/types.ts";
import { Chip, type Tone } from "../../design/surfaces.tsx";
import { Command, Empty, Problem, Reading, ScreenBody } from "../../parts/parts.tsx";
import { shown } from "../../parts/text.ts";

const REFRESH_MS = 5_000;

export function AgentFilesScreen() {
  const { data, error } = useQuery({
    queryKey: ["agent-files"],
    queryFn: () => call<AgentFiles>("GET", "/ui/agent-files"),
    refetchInterval: REFRESH_MS, // Files of a project are no commits.
  });
  if (data === undefined)
    return error === null ? <Reading what="the agent files" /> : <Problem error={error} />;
  const { agents, skills, mcpFiles, hookFiles, servers } = data;
  if (agents.length + skills.length + mcpFiles.length + hookFiles.length === 0)
    return (
      <Empty title="There are no agent files">
        <p>
          An agent can be a Markdown file: <Command>holdfast agents new NAME</Command> writes one. Files of
          Claude Code, OpenCode, Codex, Gemini CLI and Copilot are read where they are.
        </p>
      </Empty>
    );
  return (
    <ScreenBody title="Agent files">
      <Files title="Agents" files={agents} />
      <Files title="Skills" files={skills} />
      <Servers servers={servers} />
      <Files title="Files of MCP servers" files={mcpFiles} />
      <Files title="Hooks" files={hookFiles} />
    </ScreenBody>
  );
}

function Files({ title, files }: { readonly title: string; readonly files: readonly ReportedFile[] }) {
  if (files.length === 0) return null;
  return (
    <section>
      <h2 className="mb-2 font-semibold">{title}</h2>
      <ul className="space-y-2">
        {files.map((file) => (
          <li key={file.path} className="rounded-lg border border-line bg-panel p-3">
            <FileReport file={file} />
          </li>
        ))}
      </ul>
    </section>
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  loaded: "good",
  usable: "good",
  honoured: "good",
  mapped: "busy",
  hidden: "warn",
  untrusted: "warn",
  unapproved: "warn",
  ignored: "warn",
};

function Verdict({ word }: { readonly word: string }) {
  return <Chip tone={TONES[word] ?? "bad"}>{shown(word)}</Chip>;
}

function FileReport({ file }: { readonly file: ReportedFile }) {
  const { path, name, dialect, status, problem, fields, description } = file;
  const isBad = fields.some(({ verdict }) => verdict === "refused");
  return (
    <>
      <p className="flex flex-wrap items-baseline gap-x-3">
        {name === undefined ? null : <span className="font-semibold">{shown(name)}</span>}
        <Verdict word={status} />
        {dialect === undefined ? null : <span className="text-soft">{shown(dialect)}</span>}
      </p>
      {description === undefined || description === "" ? null : <p>{shown(description)}</p>}
      <p className="exact text-soft">{shown(path)}</p>
      {problem === undefined || problem === null ? null : (
        <p role="alert" className="text-bad">
          {shown(typeof problem === "string" ? problem : `${problem.message} — ${problem.fix}`)}
        </p>
      )}
      {fields.length === 0 ? null : (
        <details open={isBad} className="mt-1">
          <summary className="text-soft">
            {fields.length} {fields.length === 1 ? "field" : "fields"}
          </summary>
          <dl className="mt-1 grid grid-cols-[auto_1fr] gap-x-4">
            {fields.map(({ field, verdict, text, line }) => (
              <div key={`${field} ${line}`} className="contents">
                <dt className="exact">{shown(field)}</dt>
                <dd>
                  <Verdict word={verdict} /> {shown(text)}
                  {line === null ? null : <span className="text-soft"> (line {line})</span>}
                </dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </>
  );
}

function Servers({ servers }: { readonly servers: readonly ReportedServer[] }) {
  if (servers.length === 0) return null;
  return (
    <section>
      <h2 className="mb-2 font-semibold">MCP servers</h2>
      <ul className="rounded-lg border border-line bg-panel px-3">
        {servers.map(({ name, status, reason, isSignedIn }, at) => (
          <li
            key={`${name} ${at}`}
            className="flex flex-wrap gap-x-3 border-b border-line py-2 last:border-b-0"
          >
            <span className="font-medium">{shown(name)}</span>
            <Verdict word={status} />
            {isSignedIn ? <span className="text-good">signed in</span> : null}
            {reason === undefined || reason === "" ? null : (
              <span className="text-soft">{shown(reason)}</span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
