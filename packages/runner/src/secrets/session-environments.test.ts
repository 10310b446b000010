// The environments of a coordinator in the memory of a runner: which session gets which values, and how long.

import { HoldfastError, type Environments } from "@holdfast/core";
import { storedSecret } from "@holdfast/system";
import { beforeEach, expect, test } from "vitest";
import { SessionEnvironments } from "./session-environments.ts";

const AGENT = { name: "helper", version: "1" };
const NAME = storedSecret("staging", "TOKEN");

let tokens: Map<string, number>;
let asked: string[];
let held: string[];
let answer: (sessionId: string) => Promise<Environments>;
let environments: SessionEnvironments;
beforeEach(() => {
  [tokens, asked, held] = [new Map(), [], []];
  answer = async (sessionId) => ({
    staging: { TOKEN: { value: `of ${sessionId}`, secret: true }, REGION: { value: "eu" } },
  });
  environments = new SessionEnvironments((values) => void held.push(...values));
  const claims = {
    tokenOf: (sessionId: string) => tokens.get(sessionId),
    release: (sessionId: string, token: number) => {
      asked.push(`${sessionId} ${token}`);
      return answer(sessionId);
    },
  };
  environments.connect(claims, new Map([["OWN", "of the machine"]]));
  environments.allow(AGENT);
});

function give(sessionId: string, token: number, agent = AGENT): void {
  tokens.set(sessionId, token);
  environments.given(sessionId, agent);
}

test("a session has its own secret, and another session has not", async () => {
  give("a", 1);
  give("b", 2);
  await Promise.all([environments.ready("a"), environments.ready("a"), environments.of("b")]);
  expect(asked).toEqual(["a 1", "b 2"]);
  expect(environments.get(NAME, "a")).toBe("of a");
  expect(environments.get(NAME, "b")).toBe("of b");
  for (const sessionId of ["c", "", undefined]) expect(environments.get(NAME, sessionId)).toBeUndefined();
  expect(environments.get(storedSecret("other", "TOKEN"), "a")).toBeUndefined();
  expect(environments.get("TOKEN", "a")).toBeUndefined();
  expect(environments.get("OWN", "a")).toBe("of the machine");
  expect(held).toEqual(["of a", "of b"]);
  expect(environments.ready("a")).toBeUndefined();
});

test("the environments of a session name the secret, and have no value of it", async () => {
  give("a", 1);
  expect(await environments.of("a")).toEqual({
    staging: { TOKEN: { secret: true, storedIn: "staging" }, REGION: { value: "eu" } },
  });
});

test("an agent that may have none asks for nothing, also by another version", async () => {
  give("a", 1, { ...AGENT, version: "2" });
  expect(environments.ready("a")).toBeUndefined();
  expect(await environments.of("a")).toEqual({});
  expect(asked).toEqual([]);
});

test("a further claim asks again, and a session that is not held has no value left", async () => {
  give("a", 1);
  await environments.ready("a");
  give("a", 2);
  answer = async () => ({ staging: { TOKEN: { value: "changed", secret: true } } });
  await environments.ready("a");
  expect(asked).toEqual(["a 1", "a 2"]);
  expect(environments.get(NAME, "a")).toBe("changed");
  tokens.delete("a");
  environments.prune();
  expect(environments.get(NAME, "a")).toBeUndefined();
});

test("a coordinator without the key pauses the session, and is asked again by its next task", async () => {
  give("a", 1);
  answer = () =>
    Promise.reject(
      new HoldfastError("secret_key", "the coordinator has no key", { fix: "start it with one" }),
    );
  await expect(environments.ready("a")).rejects.toMatchObject({
    name: "PauseError",
    code: "secret_key",
    fix: "start it with one",
    pause: { reason: "auth_required" },
  });
  answer = () => Promise.reject(new HoldfastError("fenced", "it is not held"));
  await expect(environments.ready("a")).rejects.toMatchObject({ name: "HoldfastError", code: "fenced" });
  answer = async () => ({});
  await environments.ready("a");
  expect(asked).toHaveLength(3);
});
