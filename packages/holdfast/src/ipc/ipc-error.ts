// `ipcError`: an error as a host receives it, with its details and the advice for a person.

import { defined } from "@holdfast/core";
import { reportedError } from "@holdfast/terminal/frame/command-error";

export interface IpcError {
  readonly [detail: string]: unknown;
  readonly code: string;
  readonly message: string;
}

export function ipcError(thrown: unknown): IpcError {
  const { code, message, ...details } = reportedError(thrown);
  return { code, message, ...defined(details) };
}
