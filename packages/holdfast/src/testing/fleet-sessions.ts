// Helpers for sessions in tests of a fleet. Real connections take real time, so the helpers poll until a
// condition holds.

import type { Session } from "@holdfast/core";
import { expect, vi } from "vitest";
import type { Fleet } from "./fleet.ts";

export const PATIENCE = { timeout: 15_000, interval: 10 };

export async function sessionBecomes(
  fleet: Fleet,
  sessionId: string,
  wanted: Partial<Session>,
): Promise<Session> {
  return vi.waitFor(async () => {
    const session = await fleet.storage.reader.session(sessionId);
    expect(session).toMatchObject(wanted);
    return session!;
  }, PATIENCE);
}

export async function ended(fleet: Fleet, sessionId: string): Promise<Session> {
  return vi.waitFor(async () => {
    const session = await fleet.storage.reader.session(sessionId);
    expect(session?.endedAt, `${sessionId} is ${session?.status}`).toBeDefined();
    return session!;
  }, PATIENCE);
}

/** The output of a session, once it has completed. */
export async function outputOf(fleet: Fleet, sessionId: string): Promise<unknown> {
  const session = await ended(fleet, sessionId);
  expect(session).toMatchObject({ status: "completed" });
  return session.output === undefined ? undefined : JSON.parse(session.output);
}

let sent = 0;

export async function signal(
  fleet: Fleet,
  sessionId: string,
  name: string,
  payload?: unknown,
): Promise<void> {
  const signalId = `sig-${process.pid}-${sent++}`;
  const text = payload === undefined ? undefined : JSON.stringify(payload);
  await fleet.remote.commit([{ type: "send_signal", sessionId, signalId, name, payload: text }], Date.now());
}

/** Sessions of an agent that are stored now. */
export async function sessionsOf(fleet: Fleet, agent: string): Promise<readonly Session[]> {
  return fleet.storage.reader.sessions({ agent, limit: 1_000 });
}
