// `scheduleTask`: the ask for a task, and the answer when an effect that happens once may have happened.

import type { TaskAsks, TaskRequest } from "../asks/task-asks.ts";
import { UncertainEffectError } from "../errors/errors.ts";
import type { Approval } from "../journal/approval.ts";
import type { DurableFuture } from "../replay/future.ts";

/** The output in place of an effect that happens `once` and may have happened. */
export interface UncertainEffect {
  readonly uncertain: true;
  readonly taskId: string;
  readonly message: string;
}

/** The answer of a task that was asked for with these options. */
export type TaskAnswer<Output, Options> = Options extends { readonly onUncertain: "return" }
  ? Output | UncertainEffect
  : Output;

interface Person {
  requestInput(question: { readonly prompt: string; readonly details: unknown }): PromiseLike<Approval>;
}

/** @param person asked about an uncertain effect, where the options want that. */
export function scheduleTask(tasks: TaskAsks, person: Person, request: TaskRequest): DurableFuture<unknown> {
  const future = tasks.schedule(request);
  const { onUncertain = "throw" } = request.options;
  if (onUncertain === "throw") return future;
  return future.recovered(async (error) => {
    if (!UncertainEffectError.is(error)) throw error;
    const { taskId, message } = error;
    if (onUncertain === "return") return { uncertain: true, taskId, message } satisfies UncertainEffect;
    const { kind, options } = request;
    const end =
      error.cause.cause === undefined ? "was running when its process ended" : "was cut off before it ended";
    const prompt = `Task "${kind}" ${end}, and its effect may have happened. Run it again?`;
    const { approved } = await person.requestInput({ prompt, details: { taskId } });
    if (!approved) throw error;
    const { idempotencyKey: _, ...again } = options; // The key means the task that is uncertain.
    return scheduleTask(tasks, person, { ...request, options: again });
  });
}
