// `askOllama`: whether an Ollama answers, and with which models.

import { isLoopback } from "@holdfast/storage/coordinator-url";
import type { Io } from "../frame/command.ts";
import { askForJson } from "./bounded-calls.ts";

const LOCAL_MS = 1_000;
const ONLINE_MS = 5_000;
const OLLAMA_PORT = "11434";

export type OllamaFound =
  | { readonly status: "no_address" }
  /** It is on another machine, and those are not asked. */
  | { readonly status: "not_asked"; readonly url: URL }
  | { readonly status: "silent"; readonly url: URL; readonly reason: string }
  | { readonly status: "answers"; readonly url: URL; readonly models: readonly string[] };

/** @param isOnline whether an Ollama of another machine is asked. */
export async function askOllama(env: Io["env"], isOnline: boolean): Promise<OllamaFound> {
  const url = ollamaUrl(env["OLLAMA_HOST"]?.trim() ?? "");
  if (url === undefined) return { status: "no_address" };
  if (!isOnline && !isLoopback(url.hostname)) return { status: "not_asked", url };
  const ms = isLoopback(url.hostname) ? LOCAL_MS : ONLINE_MS;
  const answer = await askForJson(`${url.origin}/api/tags`, { ms });
  const body = answer.status === "answered" ? answer.body : undefined;
  const { models } = (body ?? {}) as { readonly models?: unknown };
  if (Array.isArray(models))
    return {
      status: "answers",
      url,
      models: models.map((model) => String((model as { name?: unknown } | null)?.name)),
    };
  return {
    status: "silent",
    url,
    reason: answer.status === "silent" ? answer.reason : `HTTP ${answer.code}`,
  };
}

/** OLLAMA_HOST as Ollama reads it: a host, with or without a scheme and a port. */
function ollamaUrl(given: string): URL | undefined {
  const hasScheme = /^https?:\/\//.test(given);
  const text = hasScheme ? given : `http://${given.startsWith(":") ? "127.0.0.1" : ""}${given}`;
  const full = given === "" ? `http://127.0.0.1:${OLLAMA_PORT}` : text;
  if (!URL.canParse(full)) return undefined;
  const url = new URL(full);
  if (url.port === "" && !hasScheme) url.port = OLLAMA_PORT;
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1"; // The address that a server binds, and no client calls.
  return url;
}
