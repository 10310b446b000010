// The child's end of `child.ts`.

import { nowMs } from "../measure.ts";

export function optionsOf<T>(): T {
  return JSON.parse(process.argv[2] ?? "{}") as T;
}

export function notifyParent(type: string, fields: object = {}): void {
  // Without a parent there is nobody to hear it.
  if (process.connected) process.send?.({ type, at: nowMs(), ...fields });
}
