// Asking a coordinator as people do, over REST.

import type { Fleet } from "./fleet.ts";

type Coordinator = Pick<Fleet, "url" | "adminToken">;

/** @returns the session's id. */
export async function startSession(
  coordinator: Coordinator,
  body: object,
  token = coordinator.adminToken,
): Promise<string> {
  const answer = await post<{ sessionId: string }>(coordinator, "/v1/sessions", body, token);
  return answer.sessionId;
}

/** @returns what registers one runner. */
export async function registrationToken(coordinator: Coordinator, name: string): Promise<string> {
  const body = { kind: "registration", name };
  return (await post<{ secret: string }>(coordinator, "/v1/tokens", body, coordinator.adminToken)).secret;
}

/** @returns what a person calls with. */
export async function userToken(coordinator: Coordinator, name: string): Promise<string> {
  const body = { kind: "user", name };
  return (await post<{ secret: string }>(coordinator, "/v1/tokens", body, coordinator.adminToken)).secret;
}

async function post<Answer>(
  { url }: Coordinator,
  path: string,
  body: object,
  token: string,
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as Answer;
}
