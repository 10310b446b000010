// `PushedContents`: the skills or the scripts of a coordinator that a machine holds for agents which come
// from there.
//
//   - A content is read only where the policy of the machine takes it, also for a session that began with it
//     elsewhere.
//   pushed-contents-2. An item that is inactive, or that the policy does not take, keeps its name and its
//       status for errors.

import { join } from "node:path";

import { ContentStore } from "./content-store.ts";
import type { FolderContent } from "./folder-content.ts";

/** `denied`: the policy of the machine does not take the content. */
export type PushedStatus = "loaded" | "inactive" | "denied";

export interface PushedItem {
  readonly name: string;
  /** The current version. */
  readonly hash: string;
  readonly isActive: boolean;
}

export class PushedContents {
  /** The contents lie here, each below its hash. */
  readonly folder: string;
  readonly #store: ContentStore;
  readonly #takes: (hash: string) => boolean;
  #items: readonly PushedItem[] = [];

  /** @param takes whether the policy of the machine takes a content. */
  constructor(folder: string, takes: (hash: string) => boolean) {
    this.folder = folder;
    this.#store = new ContentStore(folder);
    this.#takes = takes;
  }

  get items(): readonly (PushedItem & { readonly path: string; readonly status: PushedStatus })[] {
    return this.#items.map((item) => ({
      ...item,
      path: join(this.folder, item.hash),
      status: this.#takes(item.hash) ? (item.isActive ? "loaded" : "inactive") : "denied",
    }));
  }

  replace(items: readonly PushedItem[]): void {
    this.#items = items;
  }

  keep(content: FolderContent): void {
    this.#store.keep(content);
  }

  takes(hash: string): boolean {
    return this.#takes(hash);
  }

  content(hash: string): FolderContent | undefined {
    return this.#takes(hash) ? this.#store.read(hash) : undefined;
  }
}
