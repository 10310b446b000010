// `counted`: methods whose calls are counted by their result.

import { toHoldfastError } from "@holdfast/core";
import type { Implementation, Methods } from "./call/methods.ts";
import type { Metrics } from "./metrics.ts";
import { taken } from "./store/taken.ts";

export function counted(methods: Methods, metrics: Metrics): Methods {
  return new Map(
    [...methods].map(([desc, call]) => {
      const name = `${desc.parent.name}.${desc.localName}`;
      const isStream = desc.methodKind === "server_streaming";
      return [desc, isStream ? countedStream(name, call, metrics) : countedUnary(name, call, metrics)];
    }),
  );
}

function countedUnary(name: string, call: Implementation, metrics: Metrics): Implementation {
  return (request, context) =>
    (call(request, context) as Promise<object>).then(
      (value) => {
        metrics.request(name, "ok");
        return value;
      },
      (error: unknown) => {
        metrics.request(name, toHoldfastError(error).code);
        throw error;
      },
    );
}

function countedStream(name: string, call: Implementation, metrics: Metrics): Implementation {
  return (request, context) => countedAnswers(name, call(request, context) as AsyncIterable<object>, metrics);
}

async function* countedAnswers(
  name: string,
  answers: AsyncIterable<object>,
  metrics: Metrics,
): AsyncGenerator<object> {
  const stream = answers[Symbol.asyncIterator]();
  const end = metrics.stream();
  let code = "ok";
  try {
    for (;;) {
      const next = await stream.next();
      if (next.done === true) return;
      yield taken(next);
    }
  } catch (error) {
    code = toHoldfastError(error).code;
    throw error;
  } finally {
    await stream.return?.();
    end();
    metrics.request(name, code);
  }
}
