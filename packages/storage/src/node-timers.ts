// The timers of a Node process, for loops of a storage, which is given no clock.

import type { Clock } from "@holdfast/core";

export const nodeTimers: Pick<Clock, "setTimer"> = {
  setTimer(callback, ms, isIdle = false) {
    const timer = setTimeout(callback, ms);
    if (isIdle) timer.unref();
    return () => clearTimeout(timer);
  },
};
