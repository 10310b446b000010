// `deploymentId`: the id of the deployment, which is in every answer of its coordinators. A client thereby
// knows that another coordinator answers at an address, such as one that got the port of a stopped one.
//
// The id is made once and belongs to the storage, so all coordinators of a storage have the same.

import { type AgentStorage, decodeJson, HoldfastError, mintId, type Random } from "@holdfast/core";

const STORED = { collection: "coordinator", id: "deployment" };

export async function deploymentId(storage: AgentStorage, random: Random, now: number): Promise<string> {
  const known = await storedId(storage);
  if (known !== undefined) return known;
  const body = JSON.stringify({ id: mintId("dep", now, () => random.u32()) });
  // Another coordinator may store one at the same moment.
  await storage.commit([{ type: "put_document", ...STORED, body, expected: 0 }], now);
  const stored = await storedId(storage);
  if (stored !== undefined) return stored;
  throw new HoldfastError("storage_unavailable", "the storage does not have the id that was stored in it");
}

async function storedId({ reader }: AgentStorage): Promise<string | undefined> {
  const document = await reader.document(STORED.collection, STORED.id);
  const { id } = (decodeJson(document?.body) ?? {}) as { readonly id?: unknown };
  return typeof id === "string" ? id : undefined;
}
