// `CatalogueService`: versions of agent files, skills and scripts, pushed and read through the API.
//
//   - Every change is one audited change (X14).
//   - A runner gets a content only when a version of an item names it.

import { createHash } from "node:crypto";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CatalogueItemSchema,
  CatalogueService as Contract,
  ChangeItemRequest,
  GetContentRequest,
  GetItemRequest,
  ListItemsRequest,
  PushRequest,
} from "@holdfast/proto";
import { auditOf, callOf } from "../call/call.ts";
import type { Catalogue, ItemKind, StoredItem } from "./catalogue.ts";

export class CatalogueService implements ServiceImpl<typeof Contract> {
  readonly #catalogue: Catalogue;

  constructor({ catalogue }: { readonly catalogue: Catalogue }) {
    this.#catalogue = catalogue;
  }

  async push(
    { kind, name, files, description, tag, environments, variables }: PushRequest,
    context: HandlerContext,
  ) {
    const call = callOf(context);
    const pushed = {
      kind: kind as ItemKind,
      name,
      description,
      files: files.map(({ path, base64, executable }) => ({ path, base64, executable })),
      tag,
      environments,
      variables,
      by: call.caller.name,
    };
    const audit = auditOf(call, "catalogue.push", `${kind}:${name}`);
    return itemMessage(await this.#catalogue.push(pushed, audit));
  }

  async change({ kind, name, version, tag, active }: ChangeItemRequest, context: HandlerContext) {
    const audit = auditOf(callOf(context), "catalogue.change", `${kind}:${name}`);
    return itemMessage(await this.#catalogue.change({ kind, name, version, tag, active }, audit));
  }

  async list({ kind }: ListItemsRequest) {
    const items = (await this.#catalogue.items()).filter((item) => kind === undefined || item.kind === kind);
    const revision = createHash("sha256").update(JSON.stringify(items)).digest("hex").slice(0, 32);
    return { items: items.map(itemMessage), revision };
  }

  async get({ kind, name }: GetItemRequest) {
    return itemMessage(await this.#catalogue.item(kind, name));
  }

  async getContent({ kind, name, hash }: GetContentRequest) {
    const files = await this.#catalogue.content(kind, name, hash);
    return { files: files.map((file) => ({ ...file })) };
  }
}

function itemMessage(item: StoredItem): MessageInitShape<typeof CatalogueItemSchema> {
  const { kind, name, description, isActive, current, tags, versions } = item;
  return {
    kind,
    name,
    description,
    current,
    active: isActive,
    tags: { ...tags },
    versions: versions.map(({ hash, at, by, environments = [], variables = [] }) => ({
      hash,
      pushedAt: BigInt(at),
      pushedBy: by,
      environments: [...environments],
      variables: [...variables],
    })),
  };
}
