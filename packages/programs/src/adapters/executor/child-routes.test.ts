// The modes in which an executor starts children, what it reads of them, and what is refused. Real programs,
// processes and gateways over a runtime in memory.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { defineAgent } from "@holdfast/runtime";
import { openWorld, type World } from "../../testing/executor-world.ts";
import { Orchestration, worker, type Answered } from "../../testing/orchestration.ts";

let world: World;
let desk: Orchestration;
beforeEach(async () => {
  world = await openWorld();
  desk = new Orchestration(world);
});
afterEach(() => world.close());

describe("the other modes", () => {
  test(
    "sync is answered when the child has ended, with its result or why it has none",
    ofCampaign,
    async () => {
      const { runtime, agent } = await desk.open();
      const runs = ["all green", "fail no luck"].map((prompt) => ({
        agent_name: "worker",
        prompt,
        execution_mode: "sync",
      }));
      await (await runtime.start(agent, JSON.stringify(runs), { sessionId: desk.id })).result();
      expect(
        (await desk.answers()).map(({ status, body: { run_id: _run, session_id: _id, ...body } }) => [
          status,
          body,
        ]),
      ).toEqual([
        [201, { status: "completed", result_text: "all green", result_data: null }],
        [201, { status: "failed", error: "no luck" }],
      ]);
      expect(await desk.prompts()).toHaveLength(1);
    },
  );

  test("sync gives up in time, names the child, and leaves it running", ofCampaign, async () => {
    const { runtime, agent } = await desk.open({ conversationTtlMs: 60_000 });
    const run = { agent_name: "worker", prompt: "wait", execution_mode: "sync", wait_seconds: 1 };
    await runtime.start(agent, JSON.stringify([run]), { sessionId: desk.id });
    await desk.written("answers");
    const [{ status, body }] = (await desk.answers()) as [Answered];
    expect([status, body["code"]]).toEqual([408, "request_timeout"]);
    const childId = /session (\S+) has not ended within 1 seconds/.exec(body["detail"]!)![1]!;
    expect(body["fix"]).toContain(`GET /sessions/${childId}/status`);
    await desk.becomes(childId, "waiting");
  });

  test(
    "async_poll is the default: the executor reads status and result, and no callback comes",
    ofCampaign,
    async () => {
      const program = await world.node(`
      const { body } = await call("POST", "/runs", { agent_name: "worker", input: "wait" });
      const other = await call("POST", "/runs", { agent_name: "worker", prompt: "fail no luck" });
      const id = body.session_id, seen = [];
      const look = async (path) => { const { status, body } = await call("GET", path); seen.push([status, status < 400 ? body.status ?? body : body.code]); return body; };
      const until = async (id, word) => { for (;;) { const { body } = await call("GET", "/sessions/" + id + "/status"); if (body.status === word) return; await new Promise((r) => setTimeout(r, 20)); } };
      await until(id, "running");
      await look("/sessions/" + id + "/result");
      writeFileSync("child", id);
      await until(id, "finished");
      await until(other.body.session_id, "failed");
      await look("/sessions/" + id + "/result");
      await look("/sessions/" + other.body.session_id + "/result");
      await look("/runs/" + id); await look("/sessions/" + inv.session_id + "/status");
      await look("/sessions/ses_other/status"); await look("/sessions/ses_other"); await look("/sessions/stranger/result");
      const { session } = (await call("GET", "/sessions/" + id)).body;
      await event("result", { result_data: { seen, session } });`);
      const { runtime, agent } = world.open(program, {}, [worker]);
      await runtime.start(worker, "wait", { sessionId: "stranger" });
      const handle = await runtime.start(agent, "work", { sessionId: desk.id });
      await desk.written("child");
      await runtime.signal(desk.read("child"), "go", { n: 1 });
      const { result_data: data } = (await handle.result()) as {
        result_data: { seen: unknown; session: object };
      };
      expect(data.seen).toEqual([
        [409, "session_not_ended"],
        [200, { result_text: null, result_data: { n: 1 } }],
        [404, "not_found"],
        [200, "completed"],
        [200, "running"],
        [200, "not_existent"],
        [404, "session_not_found"],
        [404, "session_not_found"],
      ]);
      expect(data.session).toMatchObject({
        session_id: desk.read("child"),
        status: "finished",
        agent_name: "worker",
        parent_session_id: desk.id,
      });
      expect(await desk.prompts()).toEqual(["work"]);
    },
  );

  test("a key makes one child, however often it is asked for, also in later turns", ofCampaign, async () => {
    const program = await world.node(`
      const body = { agent_name: "worker", prompt: "once", callback: true, idempotency_key: "k" };
      const ids = [];
      for (let n = 0; n < 3; n++) ids.push((await call("POST", "/runs", body)).body.session_id);
      await event("result", { result_data: ids });`);
    const { runtime, agent } = world.open(program, {}, [worker]);
    const { result_data: ids } = (await (
      await runtime.start(agent, "go", { sessionId: desk.id })
    ).result()) as {
      result_data: string[];
    };
    expect(new Set(ids).size).toBe(1);
    expect(await desk.prompts()).toHaveLength(2);
    expect((await world.storage.reader.session(desk.id))?.children).toBe(1);
  });

  test("an input that the child's agent does not take is answered as that, and makes no child", async () => {
    const validate = (value: unknown) => {
      const { n = 3 } = value as { readonly n?: unknown };
      return typeof n === "number"
        ? { value: { n } as unknown }
        : { issues: [{ message: "no number", path: ["n"] }] };
    };
    const counts = defineAgent({
      name: "counts",
      input: { "~standard": { version: 1, vendor: "test", validate } },
      run: async (_ctx, given) => (given as { readonly n: number }).n,
    });
    const program = await world.node(`
      const run = (input) => call("POST", "/runs", { agent_name: "counts", input, execution_mode: "sync" });
      const wrong = await run({ n: "x" }), right = await run({});
      await event("result", { result_data: [wrong.status, wrong.body.code, wrong.body.detail, right.body.result_data] });`);
    const { runtime, agent } = world.open(program, {}, [counts]);
    const handle = await runtime.start(agent, "go", { sessionId: desk.id });
    const refusal = expect.stringContaining(
      'input of agent "counts" does not match its schema: /n',
    ) as string;
    expect(await handle.result()).toMatchObject({ result_data: [422, "invalid_input", refusal, 3] });
    expect((await world.storage.reader.session(desk.id))?.children).toBe(1);
  });

  test("equal requests at once make a child each", async () => {
    const program = await world.node(`
      const ask = () => call("POST", "/runs", { agent_name: "worker", prompt: "again" });
      const both = await Promise.all([ask(), ask()]);
      await event("result", { result_data: both.map(({ body }) => body.session_id) });`);
    const { runtime, agent } = world.open(program, {}, [worker]);
    const handle = await runtime.start(agent, "go");
    const { result_data: ids } = (await handle.result()) as { result_data: string[] };
    expect(new Set(ids).size).toBe(2);
  });

  test("requests at once make children of their own", ofCampaign, async () => {
    const program = await world.node(`
      if (inv.mode === "start") {
        const asked = Array.from({ length: 12 }, (_, n) => call("POST", "/runs", { agent_name: "worker", prompt: "child " + n, callback: true }));
        await event("result", { result_data: (await Promise.all(asked)).map(({ body }) => body.session_id) });
      } else await event("result", { result_text: inv.prompt });`);
    const { runtime, agent } = world.open(program, {}, [worker]);
    const handle = await runtime.start(agent, "go", { sessionId: desk.id });
    await handle.result();
    const all = (await desk.prompts()).slice(1).join("\n");
    const results = [...all.matchAll(/^child (\d+)$/gm)].map(([, n]) => Number(n)).toSorted((a, b) => a - b);
    expect(results).toEqual([...Array(12).keys()]);
  });
});

describe("a request that makes no sense is refused, and starts nothing", () => {
  const RIGHT = { agent_name: "worker", prompt: "x" };
  test.each(
    sampled([
      ["an unknown mode", { execution_mode: "later" }, 422, '"sync", "async_poll", "async_callback"'],
      ["a mode that is no text", { execution_mode: 7 }, 422, "the field execution_mode is"],
      [
        "a callback that contradicts its mode",
        { execution_mode: "sync", callback: true },
        422,
        "the field callback is",
      ],
      [
        "no callback in the callback mode",
        { execution_mode: "async_callback", callback: false },
        422,
        "the field callback is",
      ],
      ["a callback that is a text", { callback: "yes" }, 422, "the field callback is"],
      ["a resume", { type: "resume_session" }, 501, "start another child"],
      ["another parent", { parent_session_id: "ses_other" }, 403, "another session"],
      ["a session of another run", { session_id: "ses_other" }, 403, "another session"],
      ["an id of its own", { session_id: "its own" }, 422, "the field session_id is"],
      ["demands", { additional_demands: { tags: ["gpu"] } }, 422, "the field additional_demands is"],
      ["no input", { prompt: undefined }, 422, "exactly one of prompt, parameters and input"],
      ["two inputs", { parameters: {} }, 422, "exactly one of prompt, parameters and input"],
      ["an empty prompt", { prompt: "" }, 422, "the field prompt is"],
      ["parameters that are a list", { prompt: undefined, parameters: [] }, 422, "the field parameters is"],
      ["an agent that is no name", { agent_name: 7 }, 422, "the field agent_name is"],
      ["an impossible name of an agent", { agent_name: "a\nb" }, 422, "the field agent_name is"],
      ["no time to wait", { execution_mode: "sync", wait_seconds: 0 }, 422, "the field wait_seconds is"],
      ["too long a wait", { execution_mode: "sync", wait_seconds: 601 }, 422, "the field wait_seconds is"],
      ["half a second", { timeout_seconds: 0.5 }, 422, "the field timeout_seconds is"],
    ]),
  )("%s", async (_what, wrong, status, text) => {
    const { runtime, agent } = await desk.open();
    await (
      await runtime.start(agent, JSON.stringify([{ ...RIGHT, ...wrong }]).replace("its own", desk.id), {
        sessionId: desk.id,
      })
    ).result();
    const [answer] = await desk.answers();
    expect(answer!.status).toBe(status);
    expect(JSON.stringify(answer!.body).replaceAll('\\"', '"')).toContain(text);
    expect((await world.storage.reader.session(desk.id))?.children).toBe(0);
  });

  test(
    "a chain of executors that start each other ends at the limit of depth, by its name",
    ofCampaign,
    async () => {
      const program = await world.node(`
      const { status, body } = await call("POST", "/runs", { prompt: "deeper", execution_mode: "sync" });
      await event("result", { result_text: status === 201 ? body.result_text : status + " " + body.detail });`);
      const { runtime, agent } = world.open(program);
      expect(await (await runtime.start(agent, "go")).result()).toMatchObject({
        result_text: expect.stringMatching(/^422 session \S+ is already 8 sessions deep$/) as unknown,
      });
    },
  );
});

test("the turn of an executor that is over starts no child", ofCampaign, async () => {
  // A persistent process that still sends when its turn has ended.
  const profile = await world.node(
    `process.stdin.once("data", async (line) => {
       const { turn_id } = JSON.parse(line);
       console.log(JSON.stringify({ type: "turn_complete", turn_id, result: "done" }));
       await new Promise((resolve) => setTimeout(resolve, 300));
       writeFileSync("late", JSON.stringify(await call("POST", "/runs", { agent_name: "worker", prompt: "x" })));
     });`,
    { lifecycle: "persistent", conversationTtlMs: 60_000 },
  );
  const { runtime, agent } = world.open(profile, {}, [worker]);
  await runtime.start(agent, "go", { sessionId: desk.id });
  await desk.written("late");
  expect(JSON.parse(desk.read("late"))).toMatchObject({ status: 409, body: { code: "run_terminal" } });
  expect((await world.storage.reader.session(desk.id))?.children).toBe(0);
});
