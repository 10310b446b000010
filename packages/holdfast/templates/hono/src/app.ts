import { NotFoundError, type Runtime } from "holdfast";
import { Hono } from "hono";
import { order } from "../agents/order.ts";

/** The routes. A client chooses the id of its order, so it may send a request again when the answer was lost. */
export function createApp(runtime: Runtime): Hono {
  const app = new Hono();

  app.put("/orders/:id", async (context) => {
    const { item } = await context.req.json<{ item?: unknown }>();
    if (typeof item !== "string") return context.json({ error: "item is a text" }, 400);
    const handle = await runtime.start(order, { item }, { sessionId: context.req.param("id") });
    return context.json({ id: handle.sessionId, created: handle.created }, 202); // It is stored now.
  });

  app.get("/orders/:id", async (context) => {
    const handle = runtime.handle(context.req.param("id"));
    const { status } = await handle.session();
    return context.json(status === "completed" ? { status, output: await handle.result() } : { status });
  });

  app.post("/orders/:id/answer", async (context) => {
    const { approved } = await context.req.json<{ approved?: unknown }>();
    const receipt = await runtime.answer(context.req.param("id"), { approved: approved === true });
    return context.json(receipt);
  });

  app.onError((error, context) => {
    if (NotFoundError.is(error)) return context.json({ error: error.message }, 404);
    console.error(error);
    return context.json({ error: "the server has a problem" }, 500);
  });
  return app;
}
