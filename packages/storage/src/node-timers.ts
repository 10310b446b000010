// `setNodeTimer`: the timers of a Node process, because a storage is given no clock.

import { clearTimeout, setTimeout } from "node:timers";
import type { Clock } from "@holdfast/core";

export const setNodeTimer: Clock["setTimer"] = (callback, ms, isIdle = false) => {
  const timer = setTimeout(callback, ms);
  if (isIdle) timer.unref();
  return () => clearTimeout(timer);
};
