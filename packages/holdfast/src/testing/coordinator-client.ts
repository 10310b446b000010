// Asking a coordinator as people do, over REST.

import type { Fleet } from "./fleet.ts";

/** @returns the session's id. */
export async function startSession(
  { url, adminToken }: Pick<Fleet, "url" | "adminToken">,
  body: object,
  token = adminToken,
): Promise<string> {
  const response = await fetch(`${url}/v1/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`starting answered ${response.status}: ${text}`);
  return (JSON.parse(text) as { session_id?: string; sessionId: string }).sessionId;
}
