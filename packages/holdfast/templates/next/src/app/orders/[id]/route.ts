import { NotFoundError } from "holdfast";
import { order } from "../../../../agents/order.ts";
import { runtime } from "../../../runtime.ts";

interface Place {
  readonly params: Promise<{ readonly id: string }>;
}

/** A client chooses the id of its order, so it may send the request again when the answer was lost. */
export async function PUT(request: Request, { params }: Place): Promise<Response> {
  const { item } = (await request.json()) as { item?: unknown };
  if (typeof item !== "string") return Response.json({ error: "item is a text" }, { status: 400 });
  const handle = await runtime.start(order, { item }, { sessionId: (await params).id });
  return Response.json({ id: handle.sessionId, created: handle.created }, { status: 202 }); // It is stored now.
}

export async function GET(_request: Request, { params }: Place): Promise<Response> {
  return found(async () => {
    const handle = runtime.handle((await params).id);
    const { status } = await handle.session();
    return status === "completed" ? { status, output: await handle.result() } : { status };
  });
}

export async function POST(request: Request, { params }: Place): Promise<Response> {
  const { approved } = (await request.json()) as { approved?: unknown };
  return found(async () => runtime.answer((await params).id, { approved: approved === true }));
}

async function found(answer: () => Promise<object>): Promise<Response> {
  try {
    return Response.json(await answer());
  } catch (error) {
    if (NotFoundError.is(error)) return Response.json({ error: error.message }, { status: 404 });
    throw error;
  }
}
