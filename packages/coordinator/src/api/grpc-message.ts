// Encodes the text of an error for gRPC's trailer `grpc-message`: only percent signs and what is no printable
// ASCII.
//
// Connect's library encodes all that a URL component would; stock clients undo only what a whole URL would,
// and show `%2C` for a comma.

import type { ServerResponse } from "node:http";

/** As gRPC over HTTP/2 has it: only what is not printable ASCII, and the percent sign, is encoded. */
function encodeMessage(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent);
}

/** `grpc-message` as connect-node encodes it, encoded as stock clients read it. */
export function plainMessage(encoded: string): string {
  return encodeMessage(decodeURIComponent(encoded));
}

/** Has connect-node's trailers leave with a message that stock clients read. */
export function encodeTrailers(response: ServerResponse): void {
  const addTrailers = response.addTrailers.bind(response) as (
    headers: Readonly<Record<string, unknown>>,
  ) => void;
  response.addTrailers = (headers) => {
    const trailers = Object.entries(headers as Readonly<Record<string, unknown>>).map(([name, value]) => [
      name,
      name === "grpc-message" ? plainMessage(String(value)) : value,
    ]);
    addTrailers(Object.fromEntries(trailers) as Readonly<Record<string, unknown>>);
  };
}
