// A budget as the contract has it, with integers of 64 bits.

import { type Budget, defined } from "@holdfast/core";

export function budgetMessage({ onExhausted, windows, ...limits }: Budget) {
  return {
    ...limitsMessage(limits),
    ...(windows === undefined
      ? {}
      : { windows: windows.map(({ per, ...inWindow }) => ({ per, ...limitsMessage(inWindow) })) }),
    ...defined({ onExhausted }),
  };
}

function limitsMessage(limits: Omit<Budget, "onExhausted" | "windows">) {
  const given = Object.entries(limits).filter(([, limit]) => limit !== undefined);
  return Object.fromEntries(given.map(([name, limit]) => [name, BigInt(limit)]));
}
